import type { JobBulk, JobState } from '../../api/types';
import type { Filters } from '../../parts/useAddress';

export const FILTERS = ['state', 'queue', 'schedule', 'owner', 'label', 'target', 'error', 'worker', 'due_after', 'due_before'] as const;
export type JobFilters = Filters<(typeof FILTERS)[number]>;

export const STATES: readonly JobState[] = ['pending', 'queued', 'running', 'succeeded', 'dead', 'cancelled', 'skipped'];

export function queryOf({ state, ...rest }: JobFilters) {
  return { ...rest, ...(state && { state: state as JobState }) };
}

/** A bulk action cannot be narrowed to a node; everything else it understands. */
export function bulkFilterOf(filters: JobFilters): JobBulk['filter'] {
  return queryOf({ ...filters, worker: undefined }) as JobBulk['filter'];
}
