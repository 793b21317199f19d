import { useQueryClient, type QueryKey } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo, useState, type ReactNode } from 'react';
import { ProblemError } from '../api/problem';
import { eventStream, type EventSource } from './eventStream';
import { LiveContext, type LiveStatus } from './liveContext';
import { Refresher, type StaleQueries } from './refresher';

const FIRST_DELAY = 500;
const MAX_DELAY = 5_000;

interface LiveProviderProps {
  source: EventSource;
  stale: StaleQueries;
  /** The query that tells whether the user is signed in. */
  session: QueryKey;
  children: ReactNode;
}

/**
 * Keeps one event stream open. After a lost connection it reconnects and refreshes all data, because events
 * were missed.
 */
export function LiveProvider({ source, stale, session, children }: LiveProviderProps) {
  const client = useQueryClient();
  const [paused, setPaused] = useState(false);
  const [connection, setConnection] = useState<Exclude<LiveStatus, 'paused'>>('connecting');

  useEffect(() => {
    if (paused) return;
    const abort = new AbortController();
    const refresher = new Refresher(client, stale);
    void follow(source, refresher, session, setConnection, abort.signal);
    return () => {
      abort.abort();
      refresher.stop();
    };
  }, [client, paused, source, stale, session]);

  const toggle = useCallback(() => setPaused((previous) => !previous), []);
  const live = useMemo(
    () => ({ status: paused ? ('paused' as const) : connection, toggle }),
    [paused, connection, toggle],
  );
  return <LiveContext value={live}>{children}</LiveContext>;
}

async function follow(
  source: EventSource,
  refresher: Refresher,
  session: QueryKey,
  onStatus: (status: Exclude<LiveStatus, 'paused'>) => void,
  signal: AbortSignal,
): Promise<void> {
  let lastId: string | null = null;
  let delay = FIRST_DELAY;
  const onOpen = () => {
    onStatus('live');
    delay = FIRST_DELAY;
    refresher.refresh([]);
  };
  while (!signal.aborted) {
    try {
      for await (const event of eventStream(source, lastId, signal, onOpen)) {
        lastId = event.id ?? lastId;
        refresher.handle(event);
      }
    } catch (error) {
      if (error instanceof ProblemError && error.status === 401) refresher.refresh(session);
    }
    if (signal.aborted) return;
    onStatus('offline');
    await sleep(delay, signal);
    delay = Math.min(delay * 2, MAX_DELAY);
  }
}

function sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
