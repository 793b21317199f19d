import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useRef, useState } from 'react';
import type { BulkResult } from '../api/types';

type Step = (options: { dry_run?: boolean; cursor?: string }) => Promise<BulkResult>;

export interface BulkState {
  phase: 'counting' | 'ready' | 'running' | 'done';
  matched: number;
  atLeast: boolean;
  done: number;
  failed: BulkResult['failed'];
  error: unknown;
}

const INITIAL: BulkState = {
  phase: 'counting',
  matched: 0,
  atLeast: false,
  done: 0,
  failed: [],
  error: null,
};

/**
 * A bulk action: count the matches first, then send one request per page until none are left. It can be
 * stopped between requests.
 */
export function useBulk(step: Step) {
  const client = useQueryClient();
  const [state, setState] = useState(INITIAL);
  const stopped = useRef(false);

  const count = useCallback(async () => {
    setState(INITIAL);
    try {
      const { matched, at_least: atLeast } = await step({ dry_run: true });
      setState({ ...INITIAL, phase: 'ready', matched, atLeast });
    } catch (error) {
      setState({ ...INITIAL, error });
    }
  }, [step]);

  const run = useCallback(async () => {
    stopped.current = false;
    setState((previous) => ({ ...previous, phase: 'running', error: null }));
    try {
      let cursor: string | undefined;
      do {
        const result = await step(cursor === undefined ? {} : { cursor });
        cursor = result.next_cursor ?? undefined;
        setState((previous) => ({
          ...previous,
          done: previous.done + result.done,
          failed: [...previous.failed, ...result.failed],
        }));
      } while (cursor !== undefined && !stopped.current);
      setState((previous) => ({ ...previous, phase: 'done' }));
    } catch (error) {
      setState((previous) => ({ ...previous, phase: 'ready', error }));
    }
    await client.invalidateQueries();
  }, [step, client]);

  const stop = useCallback(() => {
    stopped.current = true;
  }, []);
  return { state, count, run, stop };
}
