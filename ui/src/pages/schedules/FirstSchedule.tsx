import { Button, Code } from '@mantine/core';
import { Link } from 'wouter';
import { EmptyState } from '../../parts/EmptyState';

export function FirstSchedule() {
  return (
    <EmptyState
      icon="schedule"
      title="No schedules yet"
      action={
        <Button component={Link} href="/schedules/new" mt="sm">
          Create the first one
        </Button>
      }
    >
      A schedule runs a task of your program, or calls a URL, at the times you choose. Every fire becomes a
      job. To add sample schedules, run <Code>duetime demo</Code> in a shell.
    </EmptyState>
  );
}
