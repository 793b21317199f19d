import { Anchor, Group, Stack, Text } from '@mantine/core';
import { Link } from 'wouter';
import type { Stats } from '../../api/types';
import { errorLine } from '../../parts/errorLine';
import { targetName } from '../../parts/targetName';
import { Card } from './Card';

export function FailingList({ failing }: { failing: Stats['failing'] }) {
  return (
    <Card title="Fails most" more={{ href: '/dead', label: 'Dead letters' }}>
      {failing.length === 0 && (
        <Text size="sm" c="dimmed">
          Nothing failed in this time.
        </Text>
      )}
      <Stack gap="sm">
        {failing.map((one) => (
          <div key={one.target}>
            <Group justify="space-between" wrap="nowrap">
              <Anchor component={Link} href={`/jobs/${one.sample}`} size="sm" className="mono" truncate c="var(--mantine-color-text)">
                {targetName(one.target)}
              </Anchor>
              <Text size="sm" fw={600} className="tabular" c="var(--state-dead)">
                {one.failed.toLocaleString('en')}
              </Text>
            </Group>
            {one.last_error && (
              <Text size="xs" c="dimmed" truncate>
                {errorLine(one.last_error)}
              </Text>
            )}
          </div>
        ))}
      </Stack>
    </Card>
  );
}
