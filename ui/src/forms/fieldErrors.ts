import { ProblemError } from '../api/problem';

export type FieldErrors = (field: string) => string | undefined;

/** What the API said about one field, to be shown beside it. */
export function fieldErrors(error: unknown): FieldErrors {
  if (!(error instanceof ProblemError)) return () => undefined;
  const told = new Map(error.errors.map((one) => [one.field, one.message]));
  if (error.field && !told.has(error.field)) told.set(error.field, error.message);
  return (field) => told.get(field);
}
