import type { Problem } from './schema';

/** What went wrong, in words, with the stable code of the API. */
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

export function unreachable(): ProblemError {
  return new ProblemError({ status: 0, code: UNREACHABLE, detail: 'The server cannot be reached. It is tried again by itself.' });
}

/** A refused request as the API tells it; a proxy in between may have answered something else. */
export async function problemOf(response: Response): Promise<ProblemError> {
  const text = await response.text();
  try {
    const told: unknown = JSON.parse(text);
    if (isProblem(told)) return new ProblemError(told);
  } catch {
    // not JSON: told below
  }
  return new ProblemError({
    status: response.status,
    code: `http_${response.status}`,
    detail: `The server answered ${response.status} ${response.statusText}`.trim(),
  });
}

function isProblem(told: unknown): told is Problem {
  return typeof told === 'object' && told !== null && 'code' in told && 'detail' in told && 'status' in told;
}

export function asProblem(error: unknown): ProblemError {
  if (error instanceof ProblemError) return error;
  const detail = error instanceof Error ? error.message : String(error);
  return new ProblemError({ status: 0, code: 'page', detail });
}
