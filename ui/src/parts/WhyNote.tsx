import { Text } from '@mantine/core';
import type { Why } from '../api/types';
import { Icon } from './Icon';
import classes from './WhyNote.module.css';

/** Explains the current state in one sentence, and what to do about it. */
export function WhyNote({ why }: { why: Why }) {
  return (
    <div className={classes.root} aria-label="Why" role="note">
      <Icon name="help" size={18} />
      <div>
        <Text size="sm" className={classes.sentence}>
          {why.why}
        </Text>
        {why.remedy && (
          <Text size="sm" c="dimmed" className={classes.sentence}>
            {why.remedy}
          </Text>
        )}
      </div>
    </div>
  );
}
