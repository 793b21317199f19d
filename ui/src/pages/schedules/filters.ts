import type { ScheduleBulk } from '../../api/types';
import type { Filters } from '../../parts/useUrlParams';

export const FILTERS = ['text', 'paused', 'owner', 'label', 'target', 'queue'] as const;
export type ScheduleFilters = Filters<(typeof FILTERS)[number]>;

export function queryOf({ paused, ...rest }: ScheduleFilters) {
  return { ...rest, ...(paused !== undefined && { paused: paused === 'true' }) };
}

export function bulkFilterOf(filters: ScheduleFilters): ScheduleBulk['filter'] {
  return queryOf(filters);
}
