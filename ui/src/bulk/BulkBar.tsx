import { Button, CloseButton, Paper, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { plural } from '../parts/plural';
import type { Selection } from '../parts/useSelection';
import classes from './BulkBar.module.css';

interface BulkBarProps {
  selection: Selection;
  noun: string;
  children: ReactNode;
}

export function BulkBar({ selection, noun, children }: BulkBarProps) {
  if (!selection.all && selection.size === 0) return null;
  return (
    <Paper className={classes.root} shadow="lg" withBorder role="region" aria-label="Selection">
      <Text size="sm" fw={550}>
        {selection.all ? `All matching ${noun}s` : `${plural(selection.size, noun)} selected`}
      </Text>
      <Button.Group>{children}</Button.Group>
      <CloseButton aria-label="Clear selection" onClick={selection.clear} />
    </Paper>
  );
}
