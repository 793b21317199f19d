import { useEffect, useRef } from 'react';
import { ProblemNote } from '../parts/ProblemNote';

/** The error of a rejected form. Moves the view and the focus to the first field with an error. */
export function FormProblem({ error, title }: { error: unknown; title: string }) {
  const note = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (error === null) return;
    const form = note.current?.closest('[role="dialog"], main') ?? document;
    const fields = [...form.querySelectorAll<HTMLElement>('[aria-invalid="true"]')];
    const first = fields.find((field) => field.offsetParent !== null) ?? note.current;
    first?.scrollIntoView({ block: 'center' });
    first?.focus({ preventScroll: true });
  }, [error]);
  return (
    <div ref={note} tabIndex={-1}>
      <ProblemNote error={error} title={title} />
    </div>
  );
}
