import { Anchor, Group, Stack, Text } from '@mantine/core';
import { Link } from 'wouter';
import type { Stats } from '../../api/types';
import { Timestamp } from '../../time/Timestamp';
import { Card } from './Card';

const MAX_FIRES = 6;

export function NextList({ next }: { next: Stats['next'] }) {
  return (
    <Card title="Next fires" more={{ href: '/calendar', label: 'Calendar' }}>
      {next.length === 0 && (
        <Text size="sm" c="dimmed">
          No upcoming fires.
        </Text>
      )}
      <Stack gap={8}>
        {next.slice(0, MAX_FIRES).map((fire) => (
          <Group key={`${fire.schedule_id} ${fire.at}`} justify="space-between" wrap="nowrap" gap="sm">
            <Anchor
              component={Link}
              href={`/schedules/${fire.schedule_id}`}
              size="sm"
              truncate
              c="var(--mantine-color-text)"
            >
              {fire.name}
            </Anchor>
            <Text size="sm" c="dimmed" component="div">
              <Timestamp at={fire.at} />
            </Text>
          </Group>
        ))}
      </Stack>
    </Card>
  );
}
