import { keyStore } from '../session/keyStore';
import { caller } from './caller';
import type { Routes } from './schema';

export { newIdempotencyKey } from './caller';

export type Route = keyof Routes;
export type ResponseBody<R extends Route> = Routes[R]['response'];
export type Body<R extends Route> = Routes[R]['body'];

/** The API of the server that serves this UI. It works below any path, because the address is relative. */
export const API = new URL('../api/v1', document.baseURI).href;

export function authorized(fields: Record<string, string>): Headers {
  const headers = new Headers(fields);
  const key = keyStore.read();
  if (key) headers.set('authorization', `Bearer ${key}`);
  return headers;
}

export const call = caller<Routes>({ base: API, authorized, credentials: 'omit' });
