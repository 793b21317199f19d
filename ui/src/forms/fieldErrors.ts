import { ProblemError } from '../api/problem';

export type FieldErrors = (field: string) => string | undefined;

/** The error of a field whose input cannot be sent; the user sees it like an error of the API. */
export const fieldProblem = (field: string, detail: string): ProblemError =>
  new ProblemError({ status: 422, code: 'input_invalid', detail, field });

/** The API's error message for a field, to show next to that field. */
export function fieldErrors(error: unknown): FieldErrors {
  if (!(error instanceof ProblemError)) return () => undefined;
  const messages = new Map(error.errors.map((entry) => [entry.field, entry.message]));
  if (error.field && !messages.has(error.field)) messages.set(error.field, error.message);
  return (field) => messages.get(field);
}
