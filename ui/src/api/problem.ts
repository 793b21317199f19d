import type { Problem } from './schema';

/** An error with a message for the user and the stable error code of the API. */
export class ProblemError extends Error {
  readonly status: number;
  readonly code: string;
  readonly field: string | null;
  readonly errors: ReadonlyArray<{ field: string; message: string }>;
  readonly requestId: string | null;

  constructor(problem: Pick<Problem, 'status' | 'code' | 'detail'> & Partial<Problem>) {
    super(problem.detail);
    this.name = 'ProblemError';
    this.status = problem.status;
    this.code = problem.code;
    this.field = problem.field ?? null;
    this.errors = problem.errors ?? [];
    this.requestId = problem.request_id ?? null;
  }
}

export const UNREACHABLE = 'unreachable';

/** Only what reads is retried: it is unknown whether a change arrived. */
export function unreachable(method: string): ProblemError {
  return new ProblemError({
    status: 0,
    code: UNREACHABLE,
    detail:
      method === 'GET'
        ? 'The server cannot be reached. Retrying automatically.'
        : 'The server cannot be reached. Try again when it is back.',
  });
}

/** Reads the problem document of a failed response. A proxy may have sent something else. */
export async function problemOf(response: Response): Promise<ProblemError> {
  const text = await response.text();
  try {
    const body: unknown = JSON.parse(text);
    if (isProblem(body)) return new ProblemError(body);
  } catch {
    // not JSON: use the status line below
  }
  return new ProblemError({
    status: response.status,
    code: `http_${response.status}`,
    detail: `The server answered ${response.status} ${response.statusText}`.trim(),
  });
}

function isProblem(body: unknown): body is Problem {
  return typeof body === 'object' && body !== null && 'code' in body && 'detail' in body && 'status' in body;
}

export function asProblem(error: unknown): ProblemError {
  if (error instanceof ProblemError) return error;
  const detail = error instanceof Error ? error.message : String(error);
  return new ProblemError({ status: 0, code: 'ui_error', detail });
}
