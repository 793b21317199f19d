import type { NewJob } from '../../api/types';
import { EMPTY_RUN, runOptionsOf, type RunDraft } from '../../forms/runDraft';
import { EMPTY_TARGET, targetOf, type TargetDraft } from '../../forms/targetDraft';
import { instantOf } from '../../time/format';

export interface JobDraft extends TargetDraft, RunDraft {
  payload: string;
  start: 'now' | 'delay' | 'at';
  delay: string;
  atTime: string;
  uniqueKey: string;
}

const EMPTY: JobDraft = {
  ...EMPTY_TARGET,
  ...EMPTY_RUN,
  payload: '',
  start: 'now',
  delay: '15m',
  atTime: '',
  uniqueKey: '',
};

export const emptyJob = (): JobDraft => EMPTY;

export function newJobOf(draft: JobDraft, payload: unknown, zone: string): NewJob {
  const at = draft.start === 'at' ? instantOf(draft.atTime, zone) : null;
  return {
    target: targetOf(draft),
    ...(payload !== undefined && { payload }),
    ...runOptionsOf(draft),
    ...(draft.start === 'delay' && { delay: draft.delay.trim() }),
    ...(draft.start === 'at' && { at: at === null ? draft.atTime : new Date(at).toISOString() }),
    ...(draft.uniqueKey.trim() && { unique_key: draft.uniqueKey.trim() }),
  };
}
