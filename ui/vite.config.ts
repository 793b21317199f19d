import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

// Two pages share the sources: `vite build` makes the one of Duetime, `vite build --mode momentum` the other.
const MOMENTUM = {
  html: 'momentum.html',
  outDir: '../src/momentum/_ui',
  publicDir: 'src/momentum/public',
};
const DUETIME = { html: 'index.html', outDir: '../src/duetime/_ui', publicDir: 'public' };

/** A service finds its page under one name, whatever the source is called. */
const asIndex: Plugin = {
  name: 'page-as-index',
  enforce: 'post',
  generateBundle(_, bundle) {
    for (const file of Object.values(bundle)) {
      if (file.fileName.endsWith('.html')) file.fileName = 'index.html';
    }
  },
};

// Relative addresses everywhere: the server names the base in each page, so the UI works below any path.
export default defineConfig(({ mode }) => {
  const page = mode === 'momentum' ? MOMENTUM : DUETIME;
  return {
    base: './',
    plugins: [react(), asIndex],
    publicDir: page.publicDir,
    build: {
      outDir: page.outDir,
      emptyOutDir: true,
      assetsInlineLimit: 0,
      target: 'es2024',
      cssTarget: ['chrome123', 'firefox121', 'safari17.5'],
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
      rolldownOptions: { input: page.html },
    },
  };
});
