import type { NewSchedule, Schedule, SchedulePatch, Task } from '../../api/types';
import { DEFAULTS } from '../../api/schema';
import { hiddenParts, type Parts } from '../../forms/hiddenParts';
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
  missedWaiting: boolean;
  missedHidden: Parts;
  jitter: string;
  startAt: string;
  endAt: string;
  maxRuns: string;
  /** The whole definition as JSON text; null while the form is used. */
  json: string | null;
  /** The version being edited and its content. The user's changes are the differences from it. */
  version: number | null;
  base: NewSchedule | null;
}

export const EMPTY_SCHEDULE: ScheduleDraft = {
  ...EMPTY_WHEN,
  ...EMPTY_TARGET,
  ...EMPTY_RUN,
  name: '',
  payload: '',
  overlap: DEFAULTS.NewScheduleIn.overlap,
  missed: DEFAULTS.MissedIn.policy,
  missedWithin: '',
  missedMax: '',
  missedWaiting: false,
  missedHidden: {},
  jitter: DEFAULTS.NewScheduleIn.jitter,
  startAt: '',
  endAt: '',
  maxRuns: '',
  json: null,
  version: null,
  base: null,
};

export const emptySchedule = (): ScheduleDraft => EMPTY_SCHEDULE;

/** The request body, and a problem if the JSON is invalid. */
export function bodyOf(draft: ScheduleDraft): { body: NewSchedule; problem: string | null } {
  if (draft.json !== null) {
    const { value, problem } = readJson(draft.json);
    return {
      body: (value ?? {}) as NewSchedule,
      problem: problem ?? (value === undefined ? 'The definition is empty' : null),
    };
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
      ...draft.missedHidden,
      policy: draft.missed,
      ...(draft.missed !== 'skip' && draft.missedWithin.trim() && { within: draft.missedWithin.trim() }),
      ...(draft.missed === 'all' && draft.missedMax && { max: Number(draft.missedMax) }),
      ...(draft.missedWaiting && { waiting: true }),
    },
    jitter: draft.jitter.trim() || EMPTY_SCHEDULE.jitter,
    ...(startAt && { start_at: startAt }),
    ...(endAt && { end_at: endAt }),
    ...(draft.maxRuns && { max_runs: Number(draft.maxRuns) }),
  };
  return { body, problem: payload.problem };
}

export function draftOfSchedule(schedule: Schedule): ScheduleDraft {
  const draft = draftOfBody({ ...withoutNulls(schedule), name: schedule.name } as NewSchedule);
  return { ...draft, version: schedule.version, base: bodyOf(draft).body };
}

/** Without null fields: a request leaves them out. */
const withoutNulls = (schedule: Schedule): object =>
  Object.fromEntries(Object.entries(schedule).filter(([, value]) => value !== null));

/** The form for a request body. Missing fields get their default values. */
export function draftOfBody(body: NewSchedule): ScheduleDraft {
  const when = draftOfWhen(body.when as Record<string, string>);
  const missed = body.missed ?? {};
  return {
    ...when,
    ...draftOfTarget(body.target),
    ...draftOfRun(body),
    name: body.name ?? '',
    payload: showJson(body.payload),
    overlap: body.overlap ?? EMPTY_SCHEDULE.overlap,
    missed: missed.policy ?? EMPTY_SCHEDULE.missed,
    missedWithin: missed.within ?? '',
    missedMax: missed.max == null ? '' : String(missed.max),
    missedWaiting: missed.waiting ?? false,
    missedHidden: hiddenParts(missed, ['policy', 'within', 'max', 'waiting']),
    jitter: body.jitter ?? EMPTY_SCHEDULE.jitter,
    startAt: localOf(body.start_at ?? null, when.tz),
    endAt: localOf(body.end_at ?? null, when.tz),
    maxRuns: body.max_runs === undefined ? '' : String(body.max_runs),
    json: null,
    version: null,
    base: null,
  };
}

/**
 * The form for a definition that the user wrote as JSON, or why no form shows all of it. It keeps what it
 * does not show of `base`, the stored definition.
 */
export function formOfJson(
  body: NewSchedule,
  base: NewSchedule | null,
): { form: ScheduleDraft | null; problem: string | null } {
  try {
    const form = draftOfBody(body);
    const kept = base === null ? [] : fieldsNotShown(base);
    const missing = fieldsNotShown(body).filter((field) => !kept.includes(field));
    if (missing.length === 0) return { form, problem: null };
    const problem = `The form cannot show ${missing.join(', ')}: remove it, or save the JSON`;
    return { form: null, problem };
  } catch {
    const problem =
      'The form cannot show this JSON: it needs "name", "when" and "target" as the API has them';
    return { form: null, problem };
  }
}

const NOTHING_HIDDEN = { whenHidden: {}, targetHidden: {}, retryHidden: {}, missedHidden: {} };

const fieldsNotShown = (body: NewSchedule): string[] =>
  fieldsWithout(body, bodyOf({ ...draftOfBody(body), ...NOTHING_HIDDEN }).body);

/** The fields that have a value in `before` and none in `after`. */
function fieldsWithout(before: unknown, after: unknown, name = ''): string[] {
  if (before == null) return [];
  if (typeof before !== 'object' || Array.isArray(before)) return after === undefined ? [name] : [];
  const others = (after ?? {}) as Record<string, unknown>;
  return Object.entries(before).flatMap(([field, value]) =>
    fieldsWithout(value, others[field], name ? `${name}.${field}` : field),
  );
}

/**
 * Only the fields that the user changed, so that changes by others are kept. A field that was emptied gets
 * what the task declares, or the default.
 */
export function patchOf(
  draft: ScheduleDraft,
  declared: Task | undefined,
): { patch: SchedulePatch; problem: string | null } {
  const { body, problem } = bodyOf(draft);
  // All other fields are reset by null.
  const resetValues: Partial<Record<keyof SchedulePatch, unknown>> = {
    ...DEFAULTS.NewScheduleIn,
    ...(declared?.queue && { queue: declared.queue }),
    ...(declared?.priority != null && { priority: declared.priority }),
    ...(declared?.delivery && { delivery: declared.delivery }),
    labels: {},
  };
  const before = (draft.base ?? {}) as Record<string, unknown>;
  const after = body as Record<string, unknown>;
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (name) => name !== 'name',
  );
  const changed = names.filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]));
  const patch = Object.fromEntries(
    changed.map((name) => [
      name,
      name in after ? after[name] : (resetValues[name as keyof SchedulePatch] ?? null),
    ]),
  );
  return { patch: patch as SchedulePatch, problem };
}
