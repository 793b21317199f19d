import type { Schedule } from '../../api/types';

export function stateOf(schedule: Schedule): 'active' | 'paused' | 'ended' {
  if (schedule.paused) return 'paused';
  return schedule.next_fire_time === null ? 'ended' : 'active';
}

/** The zone whose clocks it follows; an interval follows none. */
export const zoneOf = (schedule: Schedule): string | undefined => schedule.when['tz'] ?? (schedule.when['cron'] || schedule.when['rrule'] ? 'UTC' : undefined);

/** What was written, as opposed to what it means. */
export function expressionOf(when: Record<string, string>): string {
  return when['cron'] ?? when['rrule'] ?? (when['every'] ? `every ${when['every']}` : (when['at'] ?? ''));
}
