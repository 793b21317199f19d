import { Anchor, Group, Stack, Text } from '@mantine/core';
import { Link } from 'wouter';
import type { Stats } from '../../api/types';
import { Moment } from '../../time/Moment';
import { Card } from './Card';

const SHOWN = 6;

export function NextList({ next }: { next: Stats['next'] }) {
  return (
    <Card title="Next fires" more={{ href: '/calendar', label: 'Calendar' }}>
      {next.length === 0 && (
        <Text size="sm" c="dimmed">
          No schedule will fire.
        </Text>
      )}
      <Stack gap={8}>
        {next.slice(0, SHOWN).map((one) => (
          <Group key={`${one.schedule_id} ${one.at}`} justify="space-between" wrap="nowrap" gap="sm">
            <Anchor component={Link} href={`/schedules/${one.schedule_id}`} size="sm" truncate c="var(--mantine-color-text)">
              {one.name}
            </Anchor>
            <Text size="sm" c="dimmed" component="div">
              <Moment at={one.at} />
            </Text>
          </Group>
        ))}
      </Stack>
    </Card>
  );
}
