import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { setNonce } from 'get-nonce';
import { StrictMode, type ReactNode } from 'react';
import { createRoot } from 'react-dom/client';
import { Router } from 'wouter';
import { asProblem } from './api/problem';
import { Toasts } from './parts/Toasts';
import { theme } from './theme';

const MAX_RETRIES = 3;

/** Renders a page of this project into the document: theme, data, addresses and toasts. */
export function start(page: ReactNode): void {
  // The Content-Security-Policy allows only styles with this nonce, and scripts from the server's own files.
  const nonce = document.querySelector<HTMLMetaElement>('meta[name="style-nonce"]')?.content ?? '';
  setNonce(nonce);
  createRoot(document.getElementById('root')!).render(
    <StrictMode>
      <QueryClientProvider client={newClient()}>
        <MantineProvider theme={theme} defaultColorScheme="auto" getStyleNonce={() => nonce}>
          <Router base={new URL(document.baseURI).pathname.replace(/\/$/, '')}>{page}</Router>
          <Toasts />
        </MantineProvider>
      </QueryClientProvider>
    </StrictMode>,
  );
}

function newClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 2_000,
        refetchOnWindowFocus: false, // the event stream reports changes, unless the user has paused it
        networkMode: 'always',
        // Retry only when the server was unreachable or too busy. A rejected request stays rejected.
        retry: (count, error) => count < MAX_RETRIES && [0, 429, 503].includes(asProblem(error).status),
        retryDelay: (count) => Math.min(500 * 2 ** count, 4_000),
      },
      mutations: { networkMode: 'always' },
    },
  });
}
