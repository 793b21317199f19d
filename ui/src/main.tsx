import '@mantine/core/styles.css';
import './app.css';
import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { setNonce } from 'get-nonce';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { Router } from 'wouter';
import { asProblem } from './api/problem';
import { LiveProvider } from './live/LiveProvider';
import { Toasts } from './parts/Toasts';
import { SessionGate } from './session/SessionGate';
import { Shell } from './shell/Shell';
import { theme } from './theme';

const RETRIES = 3;

// The server's policy allows only styles with this mark; scripts are files of its own.
const nonce = document.querySelector<HTMLMetaElement>('meta[name="style-nonce"]')?.content ?? '';
setNonce(nonce);

const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 2_000,
      refetchOnWindowFocus: false, // the stream of events tells what is new, unless the user has paused it,
      networkMode: 'always',
      // What the server refused stays refused; what it could not answer is asked again.
      retry: (count, error) => count < RETRIES && [0, 429, 503].includes(asProblem(error).status),
      retryDelay: (count) => Math.min(500 * 2 ** count, 4_000),
    },
    mutations: { networkMode: 'always' },
  },
});

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <QueryClientProvider client={client}>
      <MantineProvider theme={theme} defaultColorScheme="auto" getStyleNonce={() => nonce}>
        <Router base={new URL(document.baseURI).pathname.replace(/\/$/, '')}>
          <SessionGate>
            <LiveProvider>
              <Shell />
            </LiveProvider>
          </SessionGate>
        </Router>
        <Toasts />
      </MantineProvider>
    </QueryClientProvider>
  </StrictMode>,
);
