import { Tooltip, UnstyledButton } from '@mantine/core';
import { Icon } from '../parts/Icon';
import classes from './LiveIndicator.module.css';
import { useLive, type LiveStatus } from './liveContext';

const WORDS: Record<LiveStatus, { label: string; hint: string }> = {
  connecting: { label: 'Connecting', hint: 'Waiting for the server. Click to pause.' },
  live: { label: 'Live', hint: 'Changes appear as they happen. Click to pause (Shift+P).' },
  offline: { label: 'Reconnecting', hint: 'The connection broke; it is tried again by itself.' },
  paused: { label: 'Paused', hint: 'The page stands still. Click to follow again (Shift+P).' },
};

export function LiveIndicator() {
  const { status, toggle } = useLive();
  const { label, hint } = WORDS[status];
  return (
    <Tooltip label={hint}>
      <UnstyledButton className={classes.root} data-status={status} onClick={toggle} aria-pressed={status === 'paused'} aria-label={`${label}. ${hint}`}>
        <span className={classes.dot} />
        <span className={classes.label}>{label}</span>
        <Icon name={status === 'paused' ? 'play' : 'pause'} size={14} />
      </UnstyledButton>
    </Tooltip>
  );
}
