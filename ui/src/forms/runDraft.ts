import { DEFAULTS, type RetryIn } from '../api/schema';
import { recordOf, pairsOf, type Pair } from './pairs';

/** The run options of a one-off job or a schedule while they are edited. */
export interface RunDraft {
  queue: string;
  priority: number;
  timeout: string;
  delivery: 'at_least_once' | 'at_most_once';
  /** False: the task's own retry policy applies, or the default one. */
  customRetry: boolean;
  maxAttempts: number;
  firstDelay: string;
  multiplier: number;
  maxDelay: string;
  owner: string;
  labels: Pair[];
}

export const EMPTY_RUN: RunDraft = {
  queue: DEFAULTS.NewScheduleIn.queue,
  priority: DEFAULTS.NewScheduleIn.priority,
  timeout: '',
  delivery: DEFAULTS.NewScheduleIn.delivery,
  customRetry: false,
  maxAttempts: DEFAULTS.RetryIn.max_attempts,
  firstDelay: DEFAULTS.RetryIn.first_delay,
  multiplier: DEFAULTS.RetryIn.multiplier,
  maxDelay: DEFAULTS.RetryIn.max_delay,
  owner: '',
  labels: [],
};

export function runOptionsOf(draft: RunDraft) {
  return {
    queue: draft.queue.trim() || EMPTY_RUN.queue,
    priority: draft.priority,
    delivery: draft.delivery,
    labels: recordOf(draft.labels),
    ...(draft.timeout.trim() && { timeout: draft.timeout.trim() }),
    ...(draft.owner.trim() && { owner: draft.owner.trim() }),
    ...(draft.customRetry && {
      retry: {
        max_attempts: draft.maxAttempts,
        first_delay: draft.firstDelay.trim(),
        multiplier: draft.multiplier,
        max_delay: draft.maxDelay.trim(),
      },
    }),
  };
}

interface RunOptions {
  queue?: string;
  priority?: number;
  timeout?: string;
  delivery?: RunDraft['delivery'];
  retry?: RetryIn;
  owner?: string;
  labels?: Record<string, string>;
}

/** The form for run options. Missing fields get their default values. */
export function draftOfRun(options: RunOptions): RunDraft {
  return {
    queue: options.queue ?? EMPTY_RUN.queue,
    priority: options.priority ?? EMPTY_RUN.priority,
    timeout: options.timeout ?? '',
    delivery: options.delivery ?? EMPTY_RUN.delivery,
    customRetry: options.retry != null,
    maxAttempts: options.retry?.max_attempts ?? EMPTY_RUN.maxAttempts,
    firstDelay: options.retry?.first_delay ?? EMPTY_RUN.firstDelay,
    multiplier: options.retry?.multiplier ?? EMPTY_RUN.multiplier,
    maxDelay: options.retry?.max_delay ?? EMPTY_RUN.maxDelay,
    owner: options.owner ?? '',
    labels: pairsOf(options.labels ?? {}),
  };
}
