import type { NewSchedule, Schedule, SchedulePatch } from '../../api/types';
import { EMPTY_RUN, draftOfRun, runOptionsOf, type RunDraft } from '../../forms/runDraft';
import { EMPTY_TARGET, draftOfTarget, targetOf, type TargetDraft } from '../../forms/targetDraft';
import { readJson, showJson } from '../../parts/json';
import { EMPTY_WHEN, draftOfWhen, isoOf, localOf, whenOf, type WhenDraft } from './whenDraft';

export type Overlap = NonNullable<NewSchedule['overlap']>;
export type MissedPolicy = 'latest' | 'all' | 'skip';

export interface ScheduleDraft extends WhenDraft, TargetDraft, RunDraft {
  name: string;
  payload: string;
  overlap: Overlap;
  missed: MissedPolicy;
  missedWithin: string;
  missedMax: string;
  jitter: string;
  startAt: string;
  endAt: string;
  maxRuns: string;
  /** The whole definition as JSON, while it is edited so; null in the form. */
  json: string | null;
  /** The version it began from, and what that said: what the user changed is what differs from it. */
  version: number | null;
  base: NewSchedule | null;
}

export const EMPTY_SCHEDULE: ScheduleDraft = {
  ...EMPTY_WHEN,
  ...EMPTY_TARGET,
  ...EMPTY_RUN,
  name: '',
  payload: '',
  overlap: 'skip',
  missed: 'latest',
  missedWithin: '',
  missedMax: '',
  jitter: '0s',
  startAt: '',
  endAt: '',
  maxRuns: '',
  json: null,
  version: null,
  base: null,
};

export const emptySchedule = (): ScheduleDraft => EMPTY_SCHEDULE;

/** The body to send; what cannot be read yet is told by the problem. */
export function bodyOf(draft: ScheduleDraft): { body: NewSchedule; problem: string | null } {
  if (draft.json !== null) {
    const { value, problem } = readJson(draft.json);
    return { body: (value ?? {}) as NewSchedule, problem: problem ?? (value === undefined ? 'Write the definition' : null) };
  }
  const payload = readJson(draft.payload);
  const startAt = isoOf(draft.startAt, draft.tz);
  const endAt = isoOf(draft.endAt, draft.tz);
  const body: NewSchedule = {
    name: draft.name.trim(),
    when: whenOf(draft),
    target: targetOf(draft),
    ...(payload.value !== undefined && { payload: payload.value }),
    ...runOptionsOf(draft),
    overlap: draft.overlap,
    missed: {
      policy: draft.missed,
      ...(draft.missedWithin.trim() && { within: draft.missedWithin.trim() }),
      ...(draft.missed === 'all' && draft.missedMax && { max: Number(draft.missedMax) }),
    },
    jitter: draft.jitter.trim() || '0s',
    ...(startAt && { start_at: startAt }),
    ...(endAt && { end_at: endAt }),
    ...(draft.maxRuns && { max_runs: Number(draft.maxRuns) }),
  };
  return { body, problem: payload.problem };
}

export function draftOfSchedule(schedule: Schedule): ScheduleDraft {
  const draft = draftOfBody({ ...present(schedule), name: schedule.name } as NewSchedule);
  return { ...draft, version: schedule.version, base: bodyOf(draft).body };
}

/** What is null in an answer is left out in a request. */
const present = (schedule: Schedule): object => Object.fromEntries(Object.entries(schedule).filter(([, value]) => value !== null));

/** The form for a definition as the API takes it; what that leaves out has the value it would get. */
export function draftOfBody(body: NewSchedule): ScheduleDraft {
  const when = draftOfWhen(body.when as Record<string, string>);
  const missed = body.missed ?? {};
  return {
    ...when,
    ...draftOfTarget(body.target),
    ...draftOfRun({ queue: 'default', priority: 5, timeout: null, delivery: 'at_least_once', retry: null, owner: null, labels: {}, ...body }),
    name: body.name,
    payload: showJson(body.payload),
    overlap: body.overlap ?? 'allow',
    missed: missed.policy ?? 'latest',
    missedWithin: missed.within ?? '',
    missedMax: missed.max === undefined ? '' : String(missed.max),
    jitter: body.jitter ?? '0s',
    startAt: localOf(body.start_at ?? null, when.tz),
    endAt: localOf(body.end_at ?? null, when.tz),
    maxRuns: body.max_runs === undefined ? '' : String(body.max_runs),
    json: null,
    version: null,
    base: null,
  };
}

const ABSENT: Partial<Record<keyof SchedulePatch, unknown>> = { labels: {}, jitter: '0s', payload: null, queue: 'default', priority: 5, delivery: 'at_least_once', overlap: 'allow' };

/** Only what the user changed: what others changed meanwhile elsewhere stays. */
export function patchOf(draft: ScheduleDraft): { patch: SchedulePatch; problem: string | null } {
  const { body, problem } = bodyOf(draft);
  const before = (draft.base ?? {}) as Record<string, unknown>;
  const after = body as Record<string, unknown>;
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter((name) => name !== 'name');
  const changed = names.filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]));
  const patch = Object.fromEntries(changed.map((name) => [name, name in after ? after[name] : (ABSENT[name as keyof SchedulePatch] ?? null)]));
  return { patch: patch as SchedulePatch, problem };
}
