import { CloseButton } from '@mantine/core';
import type { ReactNode } from 'react';
import { Icon } from '../../parts/Icon';
import classes from './Note.module.css';

interface NoteProps {
  tone?: 'warn' | 'bad' | 'good';
  title?: string;
  children?: ReactNode;
  onClose?: () => void;
}

/** A remark next to what it is about. */
export function Note({ tone = 'warn', title, children, onClose }: NoteProps) {
  return (
    <div className={classes.root} data-tone={tone} role={tone === 'bad' ? 'alert' : 'note'}>
      <span className={classes.icon}>
        <Icon name={tone === 'good' ? 'check' : 'warning'} size={18} />
      </span>
      <div className={classes.body}>
        {title && <div className={classes.title}>{title}</div>}
        {children}
      </div>
      {onClose && <CloseButton aria-label="Dismiss" onClick={onClose} />}
    </div>
  );
}
