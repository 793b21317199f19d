import { keyStore } from '../session/keyStore';
import { problemOf, unreachable } from './problem';
import type { Routes } from './schema';

export type Route = keyof Routes;
export type Answer<R extends Route> = Routes[R]['answer'];
export type Body<R extends Route> = Routes[R]['body'];

type Given<Name extends string, T> = unknown extends T ? { [K in Name]?: undefined } : { [K in Name]: T };
type Parts<R extends Route> = Given<'path', Routes[R]['path']> &
  (unknown extends Routes[R]['query'] ? { query?: undefined } : { query?: Routes[R]['query'] }) & {
    body?: Body<R>;
    ifMatch?: number | null;
    idempotencyKey?: string;
    signal?: AbortSignal;
  };

/** The API beside this UI, wherever both are mounted. */
export const API = new URL('../api/v1', document.baseURI).href;

export async function call<R extends Route>(route: R, parts: Parts<R>): Promise<Answer<R>> {
  const [method, template] = route.split(' ') as [string, string];
  const response = await send(method, address(template, parts.path, parts.query), parts);
  if (!response.ok) throw await problemOf(response);
  return (response.status === 204 ? undefined : await response.json()) as Answer<R>;
}

async function send(method: string, url: string, parts: { body?: unknown; ifMatch?: number | null; idempotencyKey?: string; signal?: AbortSignal }) {
  const headers = authorized({ accept: 'application/json' });
  if (parts.body !== undefined) headers.set('content-type', 'application/json');
  if (parts.ifMatch != null) headers.set('if-match', `"${parts.ifMatch}"`);
  if (parts.idempotencyKey) headers.set('idempotency-key', parts.idempotencyKey);
  const body = parts.body === undefined ? undefined : JSON.stringify(parts.body);
  try {
    return await fetch(url, { method, headers, body, signal: parts.signal ?? null, credentials: 'omit' });
  } catch (error) {
    if (parts.signal?.aborted) throw error;
    throw unreachable();
  }
}

export function authorized(fields: Record<string, string>): Headers {
  const headers = new Headers(fields);
  const key = keyStore.read();
  if (key) headers.set('authorization', `Bearer ${key}`);
  return headers;
}

function address(template: string, path: unknown, query: unknown): string {
  const filled = template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String((path as Record<string, unknown>)[name])));
  const given = Object.entries((query ?? {}) as Record<string, unknown>).filter(([, value]) => value != null && value !== '');
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `${API}${filled}${search ? `?${search}` : ''}`;
}

/** Made once per thing the user means to do, so that sending it twice does it once. */
export function newIdempotencyKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
