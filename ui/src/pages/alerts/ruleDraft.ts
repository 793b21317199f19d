import type { AlertRule } from '../../api/types';
import { CONDITIONS, type ConditionName, type RuleBody } from './conditions';

/** A rule while it is edited. It keeps the limits of every condition, so that switching loses nothing. */
export interface RuleDraft {
  name: string;
  condition: ConditionName;
  schedule: string;
  queue: string;
  after: string;
  count: number | string;
  measure: 'count' | 'ratio';
  percent: number | string;
  window: string;
  channels: string[];
  severity: AlertRule['severity'];
  enabled: boolean;
}

/** The limits with which a condition begins. */
export function limitsOf(condition: ConditionName): Pick<RuleDraft, 'after' | 'count' | 'severity'> {
  const { after = '', count = '', severity } = CONDITIONS[condition];
  return { after, count, severity };
}

export const EMPTY_RULE: RuleDraft = {
  name: '',
  condition: 'silent',
  schedule: '',
  queue: '',
  measure: 'count',
  percent: 20,
  window: '1h',
  channels: [],
  enabled: true,
  ...limitsOf('silent'),
};

export function draftOfRule(rule: AlertRule): RuleDraft {
  const limits = limitsOf(rule.condition);
  return {
    ...EMPTY_RULE,
    name: rule.name,
    condition: rule.condition,
    schedule: rule.schedule ?? '',
    queue: rule.queue ?? '',
    after: rule.after ?? limits.after,
    count: rule.count ?? limits.count,
    measure: rule.ratio === null ? 'count' : 'ratio',
    percent: rule.ratio === null ? EMPTY_RULE.percent : Math.round(rule.ratio * 1e6) / 1e4,
    window: rule.window ?? EMPTY_RULE.window,
    channels: rule.channels,
    severity: rule.severity,
    enabled: rule.enabled,
  };
}

const textOf = (isUsed: unknown, value: string): string | null =>
  isUsed && value.trim() ? value.trim() : null;

/** Only the fields that the condition has. An empty field is left out: the default of the API applies. */
export function bodyOfRule(draft: RuleDraft): RuleBody {
  const { hasSchedule, hasQueue, hasRatio, hasWindow, after, count } = CONDITIONS[draft.condition];
  const isRatio = hasRatio && draft.measure === 'ratio';
  const given = {
    schedule: textOf(hasSchedule, draft.schedule),
    queue: textOf(hasQueue, draft.queue),
    after: textOf(after, draft.after),
    count: count && !isRatio && draft.count !== '' ? Number(draft.count) : null,
    ratio: isRatio ? Math.round(Number(draft.percent) * 1e4) / 1e6 : null,
    window: textOf(isRatio || hasWindow, draft.window),
  };
  const { condition, channels, severity, enabled } = draft;
  const present = Object.entries(given).filter(([, value]) => value !== null);
  return { condition, channels, severity, enabled, ...Object.fromEntries(present) };
}
