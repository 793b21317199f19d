import { caller, searchOf } from '../../api/caller';
import { problemOf, ProblemError, unreachable } from '../../api/problem';
import type { ProblemItem, Routes } from './schema';

/** The API of the server that serves this page. It works below any path, because the address is relative. */
export const API = new URL('api/v1', document.baseURI).href;

/** The session is a cookie that scripts cannot read. The header shows that no other site sent the request. */
export function authorized(fields: Record<string, string>): Headers {
  return new Headers({ ...fields, 'x-momentum': '1' });
}

export const CREDENTIALS = 'same-origin';

/** Momentum names all problems of a request together, each with its field. */
export async function readProblem(response: Response): Promise<ProblemError> {
  const copy = response.clone();
  const problem = await problemOf(response);
  const { status, code, message: detail, requestId } = problem;
  try {
    const { problems } = (await copy.json()) as { problems?: ProblemItem[] };
    return new ProblemError({ status, code, detail, request_id: requestId, errors: problems ?? [] });
  } catch {
    return problem;
  }
}

export const call = caller<Routes>({ base: API, authorized, credentials: CREDENTIALS, readProblem });

export const mediaUrl = (id: string): string => `${API}/media/${encodeURIComponent(id)}/content`;

export const addressOf = (path: string, query: Record<string, unknown>): string => {
  const search = searchOf(query);
  return `${API}${path}${search ? `?${search}` : ''}`;
};

/** Sends a CSV file; the typed caller sends only JSON. */
export async function importCsv(
  text: string,
  query: Routes['POST /posts/import']['query'],
): Promise<Routes['POST /posts/import']['response']> {
  const response = await fetch(addressOf('/posts/import', { ...(query as Record<string, unknown>) }), {
    method: 'POST',
    headers: authorized({ accept: 'application/json', 'content-type': 'text/csv' }),
    body: text,
    credentials: CREDENTIALS,
  }).catch(() => {
    throw unreachable('POST');
  });
  if (!response.ok) throw await readProblem(response);
  return (await response.json()) as Routes['POST /posts/import']['response'];
}
