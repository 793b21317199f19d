import { useEffect, useRef } from 'react';
import { ProblemNote } from '../parts/ProblemNote';
import { focusFirstError } from './focusFirstError';

/** The error of a rejected form. Moves the view and the focus to the first field with an error. */
export function FormProblem({ error, title }: { error: unknown; title: string }) {
  const note = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (error !== null) focusFirstError(note.current, note.current);
  }, [error]);
  return (
    <div ref={note} tabIndex={-1}>
      <ProblemNote error={error} title={title} />
    </div>
  );
}
