import { ProblemError } from '../api/problem';

export type FieldErrors = (field: string) => string | undefined;

/** The API's error message for a field, to show next to that field. */
export function fieldErrors(error: unknown): FieldErrors {
  if (!(error instanceof ProblemError)) return () => undefined;
  const messages = new Map(error.errors.map((entry) => [entry.field, entry.message]));
  if (error.field && !messages.has(error.field)) messages.set(error.field, error.message);
  return (field) => messages.get(field);
}
