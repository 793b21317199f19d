import { Anchor, Group, Stack, Text } from '@mantine/core';
import { Link } from 'wouter';
import type { Stats } from '../../api/types';
import { TargetText } from '../../parts/TargetText';
import { Timestamp } from '../../time/Timestamp';
import { Card } from './Card';

const MAX_JOBS = 6;

export function LateList({ late }: { late: Stats['late'] }) {
  return (
    <Card title="Late jobs" more={{ href: '/jobs?state=pending', label: 'Pending jobs' }}>
      {late.length === 0 && (
        <Text size="sm" c="dimmed">
          No late jobs.
        </Text>
      )}
      <Stack gap={8}>
        {late.slice(0, MAX_JOBS).map((job) => (
          <Group key={job.id} justify="space-between" wrap="nowrap" gap="sm">
            <Anchor component={Link} href={`/jobs/${job.id}`} size="sm" miw={0} c="var(--mantine-color-text)">
              <TargetText target={job.target} />
            </Anchor>
            <Text size="sm" c="dimmed" component="div">
              due <Timestamp at={job.due_at} show="relative" />
            </Text>
          </Group>
        ))}
      </Stack>
    </Card>
  );
}
