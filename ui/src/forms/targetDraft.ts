import type { HttpTarget, Target } from '../api/types';
import { readJson } from '../parts/json';
import { hiddenParts, type Parts } from './hiddenParts';
import { pairsOf, recordOf, type Pair } from './pairs';

type CalledTarget = Exclude<Target, { type: 'shadow' }>;

/**
 * A target while it is edited. It keeps the fields of all types, so that switching between them loses
 * nothing.
 */
export interface TargetDraft {
  kind: 'http' | 'task' | 'command' | 'publish';
  /** Its jobs are recorded and call nothing. */
  isShadow: boolean;
  task: string;
  /** JSON, because a word may contain spaces and line breaks. */
  argv: string;
  cwd: string;
  destination: string;
  messageKey: string;
  needsReport: boolean;
  url: string;
  method: string;
  headers: Pair[];
  secrets: Pair[];
  signingSecret: string;
  body: 'json' | 'raw';
  callTimeout: string;
  success: string;
  isAsync: boolean;
  /** By type of the target. */
  targetHidden: Readonly<Record<string, Parts>>;
}

/** The parts of each type that the form shows. */
const SHOWN: Readonly<Record<string, readonly string[]>> = {
  shadow: ['type', 'target'],
  task: ['type', 'name'],
  command: ['type', 'argv', 'cwd'],
  publish: ['type', 'destination', 'key', 'report'],
  http: [
    'type',
    'url',
    'method',
    'headers',
    'secret_headers',
    'signing_secret',
    'body',
    'timeout',
    'success',
    'async',
  ],
};

export const METHODS = ['POST', 'GET', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'];

export const EMPTY_TARGET: TargetDraft = {
  kind: 'http',
  isShadow: false,
  task: '',
  argv: '',
  cwd: '',
  destination: '',
  messageKey: '',
  needsReport: false,
  url: '',
  method: 'POST',
  headers: [],
  secrets: [],
  signingSecret: '',
  body: 'json',
  callTimeout: '30s',
  success: '2xx',
  isAsync: false,
  targetHidden: {},
};

export const PAYLOAD_USE: Record<TargetDraft['kind'], string> = {
  http: 'Sent with the call.',
  task: "The task's arguments by name.",
  command: 'Sent to the standard input of the program.',
  publish: 'The data of the message.',
};

export function targetOf(draft: TargetDraft): Target {
  const target = { ...draft.targetHidden[draft.kind], ...calledTarget(draft) };
  return draft.isShadow ? { ...draft.targetHidden['shadow'], type: 'shadow', target } : target;
}

function calledTarget(draft: TargetDraft): CalledTarget {
  if (draft.kind === 'task') return { type: 'task', name: draft.task.trim() };
  if (draft.kind === 'command') {
    const argv = readJson(draft.argv).value as string[];
    return { type: 'command', argv, ...(draft.cwd.trim() && { cwd: draft.cwd.trim() }) };
  }
  if (draft.kind === 'publish') {
    const key = draft.messageKey.trim();
    return {
      type: 'publish',
      destination: draft.destination.trim(),
      ...(key && { key }),
      ...(draft.needsReport && { report: 'required' }),
    };
  }
  const secrets = recordOf(draft.secrets);
  return {
    type: 'http',
    url: draft.url.trim(),
    method: draft.method,
    headers: recordOf(draft.headers),
    ...(Object.keys(secrets).length > 0 && { secret_headers: secrets }),
    ...(draft.signingSecret && { signing_secret: draft.signingSecret }),
    body: draft.body,
    timeout: draft.callTimeout.trim(),
    success: codesOf(draft.success),
    async: draft.isAsync,
  };
}

interface AnyTarget {
  type: string;
  [key: string]: unknown;
}

export function draftOfTarget(target: AnyTarget): TargetDraft {
  const isShadow = target.type === 'shadow';
  const called = isShadow ? (target['target'] as AnyTarget) : target;
  const targets = isShadow ? [target, called] : [called];
  const targetHidden = Object.fromEntries(
    targets.map((one) => [one.type, hiddenParts(one, SHOWN[one.type] ?? [])]),
  );
  return { ...draftOfCalled(called), isShadow, targetHidden };
}

function draftOfCalled(target: AnyTarget): TargetDraft {
  if (target.type === 'task') return { ...EMPTY_TARGET, kind: 'task', task: String(target['name'] ?? '') };
  if (target.type === 'command')
    return {
      ...EMPTY_TARGET,
      kind: 'command',
      argv: JSON.stringify(target['argv']),
      cwd: String(target['cwd'] ?? ''),
    };
  if (target.type === 'publish')
    return {
      ...EMPTY_TARGET,
      kind: 'publish',
      destination: String(target['destination'] ?? ''),
      messageKey: String(target['key'] ?? ''),
      needsReport: target['report'] === 'required',
    };
  const http = target as unknown as HttpTarget;
  return {
    ...EMPTY_TARGET,
    url: http.url,
    method: http.method ?? 'POST',
    headers: pairsOf(http.headers ?? {}),
    secrets: pairsOf(http.secret_headers ?? {}),
    signingSecret: String(http.signing_secret ?? ''),
    body: http.body ?? 'json',
    callTimeout: http.timeout ?? '30s',
    success: (http.success ?? ['2xx']).join(', '),
    isAsync: http.async ?? false,
  };
}

function codesOf(text: string): Array<number | string> {
  const parts = text.split(/[\s,]+/).filter(Boolean);
  return parts.map((part) => (/^\d+$/.test(part) ? Number(part) : part));
}
