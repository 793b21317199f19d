import { Button, CloseButton, Paper, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import type { Selection } from '../parts/useSelection';
import classes from './BulkBar.module.css';

interface BulkBarProps {
  selection: Selection;
  what: string;
  children: ReactNode;
}

export function BulkBar({ selection, what, children }: BulkBarProps) {
  if (!selection.all && selection.size === 0) return null;
  return (
    <Paper className={classes.root} shadow="lg" withBorder role="region" aria-label="What is selected">
      <Text size="sm" fw={550}>
        {selection.all ? `All ${what} that match` : `${selection.size} ${what}`}
      </Text>
      <Button.Group>{children}</Button.Group>
      <CloseButton aria-label="Clear the selection" onClick={selection.clear} />
    </Paper>
  );
}
