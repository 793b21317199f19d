import { Tooltip, UnstyledButton } from '@mantine/core';
import { Icon } from '../parts/Icon';
import classes from './LiveIndicator.module.css';
import { useLive, type LiveStatus } from './liveContext';

const TEXTS: Record<LiveStatus, { label: string; hint: string }> = {
  connecting: { label: 'Connecting', hint: 'Connecting to the server. Click to pause.' },
  live: { label: 'Live', hint: 'Changes appear as they happen. Click to pause (Shift+P).' },
  offline: { label: 'Reconnecting', hint: 'The connection was lost. Retrying automatically.' },
  paused: { label: 'Paused', hint: 'Live updates are paused. Click to resume (Shift+P).' },
};

export function LiveIndicator() {
  const { status, toggle } = useLive();
  const { label, hint } = TEXTS[status];
  return (
    <Tooltip label={hint}>
      <UnstyledButton
        className={classes.root}
        data-status={status}
        onClick={toggle}
        aria-pressed={status === 'paused'}
        aria-label={`${label}. ${hint}`}
      >
        <span className={classes.dot} />
        <span className={classes.label}>{label}</span>
        <Icon name={status === 'paused' ? 'play' : 'pause'} size={14} />
      </UnstyledButton>
    </Tooltip>
  );
}
