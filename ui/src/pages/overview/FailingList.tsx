import { Anchor, Group, Stack, Text } from '@mantine/core';
import { Link } from 'wouter';
import type { Stats } from '../../api/types';
import { errorLine } from '../../parts/errorLine';
import { targetName } from '../../parts/targetName';
import { Card } from './Card';

export function FailingList({ failing }: { failing: Stats['failing'] }) {
  return (
    <Card title="Most failures" more={{ href: '/dead', label: 'Dead letters' }}>
      {failing.length === 0 && (
        <Text size="sm" c="dimmed">
          No failures in this time range.
        </Text>
      )}
      <Stack gap="sm">
        {failing.map((failure) => (
          <div key={failure.target}>
            <Group justify="space-between" wrap="nowrap">
              <Anchor
                component={Link}
                href={`/jobs/${failure.sample}`}
                size="sm"
                className="mono"
                truncate
                c="var(--mantine-color-text)"
              >
                {targetName(failure.target)}
              </Anchor>
              <Text size="sm" fw={600} className="tabular" c="var(--state-dead)">
                {failure.failed.toLocaleString('en')}
              </Text>
            </Group>
            {failure.last_error && (
              <Text size="xs" c="dimmed" truncate>
                {errorLine(failure.last_error)}
              </Text>
            )}
          </div>
        ))}
      </Stack>
    </Card>
  );
}
