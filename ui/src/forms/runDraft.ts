import { DEFAULTS, type RetryIn } from '../api/schema';
import { hiddenParts, type Parts } from './hiddenParts';
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
  backoff: Backoff;
  /** With commas. */
  delays: string;
  /** Null: the default, which depends on `delays`. */
  retryJitter: boolean | null;
  maxAge: string;
  maxLosses: number | '';
  retryHidden: Parts;
  expires: string;
  owner: string;
  labels: Pair[];
}

type Backoff = NonNullable<RetryIn['backoff']>;

const RETRY_FIELDS: ReadonlyArray<keyof RetryIn> = [
  'max_attempts',
  'first_delay',
  'multiplier',
  'max_delay',
  'backoff',
  'delays',
  'jitter',
  'max_age',
  'max_losses',
];

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
  backoff: DEFAULTS.RetryIn.backoff,
  delays: '',
  retryJitter: null,
  maxAge: '',
  maxLosses: '',
  retryHidden: {},
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
    ...(draft.customRetry && { retry: retryOf(draft) }),
  };
}

const delaysOf = (draft: RunDraft): string[] =>
  draft.delays
    .split(',')
    .map((delay) => delay.trim())
    .filter(Boolean);

/** Delays that are given one by one are exact by default. */
export const isRandom = (draft: RunDraft): boolean => draft.retryJitter ?? !hasDelays(draft);

/** Which fields have no effect next to the others. They are not sent: the server refuses them. */
export const hasDelays = (draft: RunDraft): boolean => delaysOf(draft).length > 0;
export const hasMultiplier = (draft: RunDraft): boolean => !hasDelays(draft) && draft.backoff !== 'linear';

function delayPartsOf(draft: RunDraft): RetryIn {
  if (hasDelays(draft)) return { delays: delaysOf(draft) };
  return {
    first_delay: draft.firstDelay.trim(),
    ...(hasMultiplier(draft) && draft.multiplier !== '' && { multiplier: draft.multiplier }),
    max_delay: draft.maxDelay.trim(),
    ...(draft.backoff !== EMPTY_RUN.backoff && { backoff: draft.backoff }),
  };
}

function retryOf(draft: RunDraft): RetryIn {
  return {
    ...draft.retryHidden,
    ...(draft.maxAttempts !== '' && { max_attempts: draft.maxAttempts }),
    ...delayPartsOf(draft),
    ...(draft.retryJitter !== null && { jitter: draft.retryJitter }),
    ...(draft.maxAge.trim() && { max_age: draft.maxAge.trim() }),
    ...(draft.maxLosses !== '' && { max_losses: draft.maxLosses }),
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
  const retry: RetryIn = options.retry ?? {};
  return {
    queue: options.queue ?? '',
    priority: options.priority ?? '',
    timeout: options.timeout ?? '',
    delivery: options.delivery ?? '',
    customRetry: options.retry != null,
    maxAttempts: retry.max_attempts ?? EMPTY_RUN.maxAttempts,
    firstDelay: retry.first_delay ?? EMPTY_RUN.firstDelay,
    multiplier: retry.multiplier ?? EMPTY_RUN.multiplier,
    maxDelay: retry.max_delay ?? EMPTY_RUN.maxDelay,
    backoff: retry.backoff ?? EMPTY_RUN.backoff,
    delays: (retry.delays ?? []).join(', '),
    retryJitter: retry.jitter ?? null,
    maxAge: retry.max_age ?? '',
    maxLosses: retry.max_losses ?? '',
    retryHidden: hiddenParts(retry, RETRY_FIELDS),
    expires: options.expires ?? '',
    owner: options.owner ?? '',
    labels: pairsOf(options.labels ?? {}),
  };
}
