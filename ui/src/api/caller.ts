import { problemOf, unreachable, type ProblemError } from './problem';

/** A route with its parameters, request body and successful response, as tools/ui_types.py writes them. */
export interface RouteTypes {
  path: unknown;
  query: unknown;
  body: unknown;
  response: unknown;
}

type Parameter<Name extends string, T> = unknown extends T ? { [K in Name]?: undefined } : { [K in Name]: T };
export type RequestOptions<R extends RouteTypes> = Parameter<'path', R['path']> &
  (unknown extends R['query'] ? { query?: undefined } : { query?: R['query'] }) & {
    body?: R['body'];
    ifMatch?: number | null;
    idempotencyKey?: string;
    signal?: AbortSignal;
  };

interface Server {
  /** The address of the API, without a slash at its end. */
  base: string;
  /** Adds the headers that identify the user. */
  authorized: (fields: Record<string, string>) => Headers;
  credentials: RequestCredentials;
  readProblem?: (response: Response) => Promise<ProblemError>;
}

interface SendOptions {
  path?: unknown;
  query?: unknown;
  body?: unknown;
  ifMatch?: number | null;
  idempotencyKey?: string;
  signal?: AbortSignal;
}

/** Makes a typed function that calls the routes of an API. */
export function caller<Routes extends { [R in keyof Routes]: RouteTypes }>(server: Server) {
  return async <R extends keyof Routes & string>(
    route: R,
    options: RequestOptions<Routes[R]>,
  ): Promise<Routes[R]['response']> => {
    const [method, template] = route.split(' ') as [string, string];
    const given = options as SendOptions;
    const response = await send(server, method, urlFor(server.base, template, given), given);
    if (!response.ok) throw await (server.readProblem ?? problemOf)(response);
    return response.status === 204 ? undefined : await response.json();
  };
}

async function send(server: Server, method: string, url: string, options: SendOptions): Promise<Response> {
  const headers = server.authorized({ accept: 'application/json' });
  if (options.body !== undefined) headers.set('content-type', 'application/json');
  if (options.ifMatch != null) headers.set('if-match', `"${options.ifMatch}"`);
  if (options.idempotencyKey) headers.set('idempotency-key', options.idempotencyKey);
  const body = options.body === undefined ? undefined : JSON.stringify(options.body);
  const { credentials } = server;
  try {
    return await fetch(url, { method, headers, body, signal: options.signal ?? null, credentials });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw unreachable(method);
  }
}

function urlFor(base: string, template: string, { path, query }: SendOptions): string {
  const pathname = template.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String((path as Record<string, unknown>)[name])),
  );
  const search = searchOf((query ?? {}) as Record<string, unknown>);
  return `${base}${pathname}${search ? `?${search}` : ''}`;
}

/** A query string of the fields that have a value. */
export function searchOf(query: Record<string, unknown>): string {
  const present = Object.entries(query).filter(([, value]) => value != null && value !== '');
  return new URLSearchParams(present.map(([name, value]) => [name, String(value)])).toString();
}

/** One key per user action: if the request is sent twice, the server acts once. */
export function newIdempotencyKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, '0'),
  ).join('');
}
