import { ActionIcon, CopyButton, Tooltip } from '@mantine/core';
import { Icon } from './Icon';
import classes from './JsonBlock.module.css';

/** JSON or plain text in a scrolling box. */
export function JsonBlock({ value, label }: { value: unknown; label: string }) {
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2);
  return (
    <div className={classes.root}>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a scrolling box must be reachable by keyboard */}
      <pre className={classes.text} tabIndex={0} role="region" aria-label={label}>
        {text}
      </pre>
      <CopyButton value={text ?? ''}>
        {({ copied, copy }) => (
          <Tooltip label={copied ? 'Copied' : 'Copy'}>
            <ActionIcon className={classes.copy} onClick={copy} aria-label={`Copy ${label}`} size="sm">
              <Icon name={copied ? 'check' : 'copy'} size={14} />
            </ActionIcon>
          </Tooltip>
        )}
      </CopyButton>
    </div>
  );
}
