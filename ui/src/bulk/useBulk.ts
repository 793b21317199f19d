import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useRef, useState } from 'react';
import type { BulkAnswer } from '../api/types';

type Step = (options: { dry_run?: boolean; cursor?: string }) => Promise<BulkAnswer>;

export interface BulkState {
  phase: 'counting' | 'ready' | 'running' | 'done';
  matched: number;
  atLeast: boolean;
  done: number;
  failed: BulkAnswer['failed'];
  error: unknown;
}

const BEGIN: BulkState = { phase: 'counting', matched: 0, atLeast: false, done: 0, failed: [], error: null };

/** An action on many: counted first, then done call after call until nothing is left, and stoppable in between. */
export function useBulk(step: Step) {
  const client = useQueryClient();
  const [state, setState] = useState(BEGIN);
  const stopped = useRef(false);

  const count = useCallback(async () => {
    setState(BEGIN);
    try {
      const { matched, at_least: atLeast } = await step({ dry_run: true });
      setState({ ...BEGIN, phase: 'ready', matched, atLeast });
    } catch (error) {
      setState({ ...BEGIN, error });
    }
  }, [step]);

  const run = useCallback(async () => {
    stopped.current = false;
    setState((was) => ({ ...was, phase: 'running', error: null }));
    try {
      let cursor: string | undefined;
      do {
        const answer = await step(cursor === undefined ? {} : { cursor });
        cursor = answer.next_cursor ?? undefined;
        setState((was) => ({ ...was, done: was.done + answer.done, failed: [...was.failed, ...answer.failed] }));
      } while (cursor !== undefined && !stopped.current);
      setState((was) => ({ ...was, phase: 'done' }));
    } catch (error) {
      setState((was) => ({ ...was, phase: 'ready', error }));
    }
    await client.invalidateQueries();
  }, [step, client]);

  const stop = useCallback(() => {
    stopped.current = true;
  }, []);
  return { state, count, run, stop };
}
