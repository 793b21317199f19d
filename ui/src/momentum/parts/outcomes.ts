import type { LogItem } from '../api/types';

type Outcome = LogItem['outcome'] | undefined;

const OUTCOMES: Record<NonNullable<LogItem['outcome']>, { label: string; tone: string }> = {
  published: { label: 'Accepted', tone: 'succeeded' },
  retry: { label: 'Tried again later', tone: 'cancelled' },
  held: { label: 'Held back', tone: 'cancelled' },
  failed: { label: 'Failed', tone: 'dead' },
  unknown: { label: 'In doubt', tone: 'retrying' },
};

export const OUTCOME_OPTIONS = Object.entries(OUTCOMES).map(([value, { label }]) => ({ value, label }));

/** The outcome of a filter in the address, which may hold anything. */
export const outcomeOf = (text: string | undefined): Outcome =>
  text !== undefined && Object.hasOwn(OUTCOMES, text) ? (text as Outcome) : undefined;

/** How an attempt ended; without an outcome it runs, or its worker died. */
export const outcomeLabel = (outcome: Outcome): string => (outcome ? OUTCOMES[outcome].label : 'Running');

export const outcomeTone = (outcome: Outcome): string => (outcome ? OUTCOMES[outcome].tone : 'running');
