import { Anchor, Group, Stack, Text } from '@mantine/core';
import { Link } from 'wouter';
import type { Stats } from '../../api/types';
import { TargetText } from '../../parts/TargetText';
import { Moment } from '../../time/Moment';
import { Card } from './Card';

const SHOWN = 6;

export function LateList({ late }: { late: Stats['late'] }) {
  return (
    <Card title="Late" more={{ href: '/jobs?state=pending', label: 'Pending jobs' }}>
      {late.length === 0 && (
        <Text size="sm" c="dimmed">
          Everything that is due has been claimed.
        </Text>
      )}
      <Stack gap={8}>
        {late.slice(0, SHOWN).map((job) => (
          <Group key={job.id} justify="space-between" wrap="nowrap" gap="sm">
            <Anchor component={Link} href={`/jobs/${job.id}`} size="sm" miw={0} c="var(--mantine-color-text)">
              <TargetText target={job.target} />
            </Anchor>
            <Text size="sm" c="dimmed" component="div">
              due <Moment at={job.due_at} show="relative" />
            </Text>
          </Group>
        ))}
      </Stack>
    </Card>
  );
}
