import type { JobBulk, JobState } from '../../api/types';
import type { Filters } from '../../parts/useUrlParams';

export const FILTERS = [
  'state',
  'queue',
  'schedule',
  'owner',
  'label',
  'target',
  'error',
  'error_group',
  'payload',
  'worker',
  'due_after',
  'due_before',
] as const;
export type JobFilters = Filters<(typeof FILTERS)[number]>;

export const STATES: readonly JobState[] = [
  'pending',
  'running',
  'succeeded',
  'dead',
  'cancelled',
  'skipped',
];

export function queryOf({ state, ...rest }: JobFilters) {
  return { ...rest, ...(state && { state: state as JobState }) };
}

/** The filter of a bulk action. It has no filter by node. */
export function bulkFilterOf(filters: JobFilters): JobBulk['filter'] {
  return queryOf({ ...filters, worker: undefined }) as JobBulk['filter'];
}
