import { Button } from '@mantine/core';
import { Link } from 'wouter';
import { EmptyState } from '../parts/EmptyState';

export function NotFound({ home }: { home: string }) {
  return (
    <EmptyState
      icon="search"
      title="Page not found"
      level={1}
      action={
        <Button component={Link} href="/" mt="sm">
          {home}
        </Button>
      }
    >
      Check the address. The page may have moved in another version.
    </EmptyState>
  );
}
