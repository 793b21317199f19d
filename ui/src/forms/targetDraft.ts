import type { HttpTarget, Target } from '../api/types';
import { pairsOf, recordOf, type Pair } from './pairs';

/**
 * A target while it is edited. It keeps the fields of both types, so that switching between them loses
 * nothing.
 */
export interface TargetDraft {
  kind: 'http' | 'task';
  task: string;
  url: string;
  method: string;
  headers: Pair[];
  secrets: Pair[];
  signingSecret: string;
  body: 'json' | 'raw';
  callTimeout: string;
  success: string;
  isAsync: boolean;
}

export const METHODS = ['POST', 'GET', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'];

export const EMPTY_TARGET: TargetDraft = {
  kind: 'http',
  task: '',
  url: '',
  method: 'POST',
  headers: [],
  secrets: [],
  signingSecret: '',
  body: 'json',
  callTimeout: '30s',
  success: '2xx',
  isAsync: false,
};

export function targetOf(draft: TargetDraft): Target {
  if (draft.kind === 'task') return { type: 'task', name: draft.task.trim() };
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

export function draftOfTarget(target: { type: string; [key: string]: unknown }): TargetDraft {
  if (target.type !== 'http') return { ...EMPTY_TARGET, kind: 'task', task: String(target['name'] ?? '') };
  const http = target as unknown as HttpTarget;
  return {
    kind: 'http',
    task: '',
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
