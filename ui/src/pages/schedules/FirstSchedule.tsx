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
      A schedule says when something runs again and again: a task of your program, or a call to an address. Every fire becomes a job that you can
      watch here. From a shell, <Code>duetime demo</Code> adds a lively set of examples.
    </EmptyState>
  );
}
