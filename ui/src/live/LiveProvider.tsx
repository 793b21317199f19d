import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo, useState, type ReactNode } from 'react';
import { ProblemError } from '../api/problem';
import { eventStream } from './eventStream';
import { LiveContext, type LiveStatus } from './liveContext';
import { Refresher } from './refresher';

const FIRST_WAIT = 500;
const LONGEST_WAIT = 5_000;

/** Keeps one stream of events open, comes back by itself when it breaks, and fetches anew what was missed meanwhile. */
export function LiveProvider({ children }: { children: ReactNode }) {
  const client = useQueryClient();
  const [paused, setPaused] = useState(false);
  const [connection, setConnection] = useState<Exclude<LiveStatus, 'paused'>>('connecting');

  useEffect(() => {
    if (paused) return;
    const end = new AbortController();
    const refresher = new Refresher(client);
    void follow(refresher, setConnection, end.signal);
    return () => {
      end.abort();
      refresher.stop();
    };
  }, [client, paused]);

  const toggle = useCallback(() => setPaused((was) => !was), []);
  const live = useMemo(() => ({ status: paused ? ('paused' as const) : connection, toggle }), [paused, connection, toggle]);
  return <LiveContext value={live}>{children}</LiveContext>;
}

async function follow(refresher: Refresher, tell: (status: Exclude<LiveStatus, 'paused'>) => void, signal: AbortSignal): Promise<void> {
  let lastId: string | null = null;
  let wait = FIRST_WAIT;
  const opened = () => {
    tell('live');
    wait = FIRST_WAIT;
    refresher.refresh([]);
  };
  while (!signal.aborted) {
    try {
      for await (const event of eventStream(lastId, signal, opened)) {
        lastId = event.id ?? lastId;
        refresher.take(event);
      }
    } catch (error) {
      if (error instanceof ProblemError && error.status === 401) refresher.refresh(['me']);
    }
    if (signal.aborted) return;
    tell('offline');
    await pause(wait, signal);
    wait = Math.min(wait * 2, LONGEST_WAIT);
  }
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
