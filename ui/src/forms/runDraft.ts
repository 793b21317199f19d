import { DEFAULTS, type RetryIn } from '../api/schema';
import { recordOf, pairsOf, type Pair } from './pairs';

/**
 * The run options of a one-off job or a schedule while they are edited. An empty field is not sent: what the
 * task declares applies, or the default.
 */
export interface RunDraft {
  queue: string;
  priority: number | '';
  timeout: string;
  delivery: '' | 'at_least_once' | 'at_most_once';
  /** False: the task's own retry policy applies, or the default one. */
  customRetry: boolean;
  maxAttempts: number | '';
  firstDelay: string;
  multiplier: number | '';
  maxDelay: string;
  retryJitter: boolean;
  expires: string;
  owner: string;
  labels: Pair[];
}

export const EMPTY_RUN: RunDraft = {
  queue: '',
  priority: '',
  timeout: '',
  delivery: '',
  customRetry: false,
  maxAttempts: DEFAULTS.RetryIn.max_attempts,
  firstDelay: DEFAULTS.RetryIn.first_delay,
  multiplier: DEFAULTS.RetryIn.multiplier,
  maxDelay: DEFAULTS.RetryIn.max_delay,
  retryJitter: true,
  expires: '',
  owner: '',
  labels: [],
};

export function runOptionsOf(draft: RunDraft): RunOptions {
  const labels = recordOf(draft.labels);
  return {
    ...(draft.queue.trim() && { queue: draft.queue.trim() }),
    ...(draft.priority !== '' && { priority: draft.priority }),
    ...(draft.delivery && { delivery: draft.delivery }),
    ...(Object.keys(labels).length > 0 && { labels }),
    ...(draft.timeout.trim() && { timeout: draft.timeout.trim() }),
    ...(draft.expires.trim() && { expires: draft.expires.trim() }),
    ...(draft.owner.trim() && { owner: draft.owner.trim() }),
    ...(draft.customRetry && {
      retry: {
        ...(draft.maxAttempts !== '' && { max_attempts: draft.maxAttempts }),
        first_delay: draft.firstDelay.trim(),
        ...(draft.multiplier !== '' && { multiplier: draft.multiplier }),
        max_delay: draft.maxDelay.trim(),
        ...(!draft.retryJitter && { jitter: false }),
      },
    }),
  };
}

interface RunOptions {
  queue?: string;
  priority?: number;
  timeout?: string;
  delivery?: 'at_least_once' | 'at_most_once';
  retry?: RetryIn;
  expires?: string;
  owner?: string;
  labels?: Record<string, string>;
}

/** The form for run options. Missing fields stay empty. */
export function draftOfRun(options: RunOptions): RunDraft {
  return {
    queue: options.queue ?? '',
    priority: options.priority ?? '',
    timeout: options.timeout ?? '',
    delivery: options.delivery ?? '',
    customRetry: options.retry != null,
    maxAttempts: options.retry?.max_attempts ?? EMPTY_RUN.maxAttempts,
    firstDelay: options.retry?.first_delay ?? EMPTY_RUN.firstDelay,
    multiplier: options.retry?.multiplier ?? EMPTY_RUN.multiplier,
    maxDelay: options.retry?.max_delay ?? EMPTY_RUN.maxDelay,
    retryJitter: options.retry?.jitter ?? EMPTY_RUN.retryJitter,
    expires: options.expires ?? '',
    owner: options.owner ?? '',
    labels: pairsOf(options.labels ?? {}),
  };
}
