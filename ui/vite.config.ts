import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

// Relative addresses everywhere: the server names the base in each page, so the UI works below any path.
export default defineConfig({
  base: './',
  plugins: [react()],
  build: {
    outDir: '../src/duetime/_ui',
    emptyOutDir: true,
    assetsInlineLimit: 0,
    target: 'es2024',
    cssTarget: ['chrome123', 'firefox121', 'safari17.5'],
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});
