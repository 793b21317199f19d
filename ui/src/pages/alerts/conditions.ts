import type { Body } from '../../api/call';
import type { AlertRule } from '../../api/types';
import { plural } from '../../parts/plural';

export type ConditionName = AlertRule['condition'];
export type RuleBody = Body<'PUT /alerts/rules/{rule}'>;
type Limits = { [Field in 'schedule' | 'queue' | 'after' | 'count' | 'ratio' | 'window']?: AlertRule[Field] };

export interface Condition {
  label: string;
  /** What it means, in a sentence. */
  help: string;
  severity: AlertRule['severity'];
  hasSchedule?: true;
  hasQueue?: true;
  /** How long it may last; the default of the API. */
  after?: string;
  afterLabel?: string;
  /** How many; the default of the API. */
  count?: number;
  countLabel?: string;
  hasRatio?: true;
  /** Whether the count is that of a time. */
  hasWindow?: true;
  describe: (rule: Limits) => string;
}

export const CONDITIONS: Record<ConditionName, Condition> = {
  silent: {
    label: 'Silent',
    help: 'A schedule has fired, or should have, and none of its jobs has succeeded since. Paused schedules are not silent.',
    severity: 'critical',
    hasSchedule: true,
    hasQueue: true,
    after: '10m',
    afterLabel: 'Without a success for',
    describe: (rule) => `${scheduleOf(rule)} has no success ${rule.after ?? ''} after its fire`,
  },
  late: {
    label: 'Late',
    help: 'A job is due and has not started. Only you know how late is too late: there is no built-in rule.',
    severity: 'warning',
    hasSchedule: true,
    hasQueue: true,
    after: '5m',
    afterLabel: 'Not started for',
    describe: (rule) => `a job${jobsOf(rule)} has not started ${rule.after ?? ''} after it was due`,
  },
  failing: {
    label: 'Failing',
    help: 'Jobs end as dead letters, after their last retries.',
    severity: 'critical',
    hasSchedule: true,
    hasQueue: true,
    count: 3,
    countLabel: 'Dead letters in a row',
    hasRatio: true,
    describe: (rule) => {
      if (rule.ratio == null)
        return `the last ${rule.count === 1 ? 'job' : `${rule.count} jobs`} of ${scheduleOf(rule)} failed`;
      const share = `${Math.round(rule.ratio * 1_000) / 10} %`;
      return `${share} of the jobs${jobsOf(rule)} failed within ${rule.window ?? ''} (of 10 or more)`;
    },
  },
  dead_letters: {
    label: 'Dead letters',
    help: 'A schedule or target has open dead letters. It ends when they are retried or discarded.',
    severity: 'warning',
    hasSchedule: true,
    hasQueue: true,
    count: 1,
    countLabel: 'Open dead letters',
    describe: (rule) => {
      const some = rule.schedule || rule.queue ? scheduleOf(rule) : 'a schedule or target';
      return `${some} has ${plural(rule.count ?? 1, 'open dead letter')}${rule.count === 1 ? '' : ' or more'}`;
    },
  },
  skipped: {
    label: 'Skipped fires',
    help: 'Fires of a schedule were missed or came too late, and did not run. Those skipped for an overlap do not count.',
    severity: 'warning',
    hasSchedule: true,
    hasQueue: true,
    count: 3,
    countLabel: 'Skipped fires',
    hasWindow: true,
    describe: (rule) =>
      `${plural(rule.count ?? 1, 'fire')} of ${scheduleOf(rule)} ${rule.count === 1 ? 'was' : 'were'} skipped within ${rule.window ?? '1h'}`,
  },
  queue_lag: {
    label: 'Queue lag',
    help: 'Jobs of a queue wait too long for a worker. Paused queues do not count.',
    severity: 'warning',
    hasQueue: true,
    after: '10m',
    afterLabel: 'A job waits for',
    describe: (rule) => `a job of ${named('queue', rule.queue)} is due for more than ${rule.after ?? ''}`,
  },
  no_leader: {
    label: 'No leader',
    help: 'No node has led the others for a time. If no node was there at all, it is told as soon as one is.',
    severity: 'critical',
    after: '1m',
    afterLabel: 'No leader for',
    describe: (rule) => `no node has led for more than ${rule.after ?? ''}`,
  },
  node_lost: {
    label: 'Node lost',
    help: 'A node died, and no node with the same roles took its place. A node that was stopped is not lost.',
    severity: 'warning',
    after: '1m',
    afterLabel: 'Not replaced for',
    describe: (rule) => `a node died and was not replaced within ${rule.after ?? ''}`,
  },
  clock_skew: {
    label: 'Clock skew',
    help: 'The clock of a node and the clock of the store show different times.',
    severity: 'warning',
    after: '5s',
    afterLabel: 'A difference of',
    describe: (rule) => `the clock of a node differs from the store's by more than ${rule.after ?? ''}`,
  },
};

export const conditionLabel = (name: ConditionName): string => CONDITIONS[name].label;

/** Built-in rules have the names of conditions. */
export const isBuiltIn = (name: string): boolean => name in CONDITIONS && name !== 'late';

/** "Tells ops when schedule nightly has no success 2h after its fire." */
export function describeRule(rule: Limits & Pick<RuleBody, 'condition' | 'channels' | 'enabled'>): string {
  const { after, count, describe } = CONDITIONS[rule.condition];
  const when = describe({ ...rule, after: rule.after ?? after ?? null, count: rule.count ?? count ?? null });
  if (rule.enabled === false) return `Tells nothing when ${when}, and no other rule does.`;
  return `Tells ${rule.channels?.length ? rule.channels.join(', ') : 'all channels'} when ${when}.`;
}

function named(noun: string, pattern: string | null | undefined): string {
  if (!pattern) return `any ${noun}`;
  return pattern.includes('*') ? `a ${noun} like ${pattern}` : `${noun} ${pattern}`;
}

function scheduleOf({ schedule, queue }: Limits): string {
  const which = named('schedule', schedule);
  return queue ? `${which} in ${named('queue', queue)}` : which;
}

/** Jobs need not belong to a schedule. */
function jobsOf({ schedule, queue }: Limits): string {
  const of = schedule ? ` of ${named('schedule', schedule)}` : '';
  return queue ? `${of} in ${named('queue', queue)}` : of;
}
