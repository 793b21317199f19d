import type { ReactNode } from 'react';
import classes from './StateBadge.module.css';

/** A short text in the colour of a state, as `app.css` names them. */
export function ToneBadge({ tone, children }: { tone: string; children: ReactNode }) {
  return (
    <span className={classes.root} data-tone={tone}>
      {children}
    </span>
  );
}
