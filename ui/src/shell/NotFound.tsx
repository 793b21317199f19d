import { Button } from '@mantine/core';
import { Link } from 'wouter';
import { EmptyState } from '../parts/EmptyState';

export function NotFound() {
  return (
    <EmptyState icon="search" title="There is no such page" level={1} action={<Button component={Link} href="/" mt="sm">Overview</Button>}>
      The address may be mistyped, or from another version.
    </EmptyState>
  );
}
