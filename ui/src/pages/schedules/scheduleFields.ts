import type { Schedule } from '../../api/types';

export function stateOf(schedule: Schedule): 'active' | 'paused' | 'ended' {
  if (schedule.paused) return 'paused';
  return schedule.next_fire_time === null ? 'ended' : 'active';
}

/** The time zone of the schedule; an interval has none. */
export const zoneOf = (schedule: Schedule): string | undefined =>
  schedule.when['tz'] ?? (schedule.when['cron'] || schedule.when['rrule'] ? 'UTC' : undefined);

/** The expression as the user wrote it. */
export function expressionOf(when: Record<string, string>): string {
  return when['cron'] ?? when['rrule'] ?? (when['every'] ? `every ${when['every']}` : (when['at'] ?? ''));
}
