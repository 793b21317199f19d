import { keyStore } from '../session/keyStore';
import { problemOf, unreachable } from './problem';
import type { Routes } from './schema';

export type Route = keyof Routes;
export type ResponseBody<R extends Route> = Routes[R]['response'];
export type Body<R extends Route> = Routes[R]['body'];

type Parameter<Name extends string, T> = unknown extends T ? { [K in Name]?: undefined } : { [K in Name]: T };
type RequestOptions<R extends Route> = Parameter<'path', Routes[R]['path']> &
  (unknown extends Routes[R]['query'] ? { query?: undefined } : { query?: Routes[R]['query'] }) & {
    body?: Body<R>;
    ifMatch?: number | null;
    idempotencyKey?: string;
    signal?: AbortSignal;
  };

/** The API of the server that serves this UI. It works below any path, because the address is relative. */
export const API = new URL('../api/v1', document.baseURI).href;

export async function call<R extends Route>(route: R, options: RequestOptions<R>): Promise<ResponseBody<R>> {
  const [method, template] = route.split(' ') as [string, string];
  const response = await send(method, urlFor(template, options.path, options.query), options);
  if (!response.ok) throw await problemOf(response);
  return (response.status === 204 ? undefined : await response.json()) as ResponseBody<R>;
}

async function send(
  method: string,
  url: string,
  options: { body?: unknown; ifMatch?: number | null; idempotencyKey?: string; signal?: AbortSignal },
) {
  const headers = authorized({ accept: 'application/json' });
  if (options.body !== undefined) headers.set('content-type', 'application/json');
  if (options.ifMatch != null) headers.set('if-match', `"${options.ifMatch}"`);
  if (options.idempotencyKey) headers.set('idempotency-key', options.idempotencyKey);
  const body = options.body === undefined ? undefined : JSON.stringify(options.body);
  try {
    return await fetch(url, { method, headers, body, signal: options.signal ?? null, credentials: 'omit' });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw unreachable();
  }
}

export function authorized(fields: Record<string, string>): Headers {
  const headers = new Headers(fields);
  const key = keyStore.read();
  if (key) headers.set('authorization', `Bearer ${key}`);
  return headers;
}

function urlFor(template: string, path: unknown, query: unknown): string {
  const pathname = template.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String((path as Record<string, unknown>)[name])),
  );
  const present = Object.entries((query ?? {}) as Record<string, unknown>).filter(
    ([, value]) => value != null && value !== '',
  );
  const search = new URLSearchParams(present.map(([name, value]) => [name, String(value)])).toString();
  return `${API}${pathname}${search ? `?${search}` : ''}`;
}

/** One key per user action: if the request is sent twice, the server acts once. */
export function newIdempotencyKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, '0'),
  ).join('');
}
