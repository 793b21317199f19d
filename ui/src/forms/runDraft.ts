import { recordOf, pairsOf, type Pair } from './pairs';

/** How jobs run: what one-off jobs and schedules have in common, while it is being written. */
export interface RunDraft {
  queue: string;
  priority: number;
  timeout: string;
  delivery: 'at_least_once' | 'at_most_once';
  retries: boolean;
  maxAttempts: number;
  firstDelay: string;
  multiplier: number;
  maxDelay: string;
  owner: string;
  labels: Pair[];
}

export const EMPTY_RUN: RunDraft = {
  queue: 'default',
  priority: 5,
  timeout: '',
  delivery: 'at_least_once',
  retries: false,
  maxAttempts: 5,
  firstDelay: '5s',
  multiplier: 2,
  maxDelay: '1h',
  owner: '',
  labels: [],
};

export function runOptionsOf(draft: RunDraft) {
  return {
    queue: draft.queue.trim() || 'default',
    priority: draft.priority,
    delivery: draft.delivery,
    labels: recordOf(draft.labels),
    ...(draft.timeout.trim() && { timeout: draft.timeout.trim() }),
    ...(draft.owner.trim() && { owner: draft.owner.trim() }),
    ...(draft.retries && {
      retry: { max_attempts: draft.maxAttempts, first_delay: draft.firstDelay.trim(), multiplier: draft.multiplier, max_delay: draft.maxDelay.trim() },
    }),
  };
}

interface RunShown {
  queue: string;
  priority: number;
  timeout: string | null;
  delivery: RunDraft['delivery'];
  retry: Record<string, unknown> | null;
  owner: string | null;
  labels: Record<string, string>;
}

export function draftOfRun(shown: RunShown): RunDraft {
  const retry = shown.retry ?? {};
  return {
    queue: shown.queue,
    priority: shown.priority,
    timeout: shown.timeout ?? '',
    delivery: shown.delivery,
    retries: shown.retry !== null,
    maxAttempts: Number(retry['max_attempts'] ?? EMPTY_RUN.maxAttempts),
    firstDelay: String(retry['first_delay'] ?? EMPTY_RUN.firstDelay),
    multiplier: Number(retry['multiplier'] ?? EMPTY_RUN.multiplier),
    maxDelay: String(retry['max_delay'] ?? EMPTY_RUN.maxDelay),
    owner: shown.owner ?? '',
    labels: pairsOf(shown.labels),
  };
}
