import { Anchor, Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { call } from '../../api/call';
import { useRefresh } from '../../live/liveContext';
import { ProblemNote } from '../../parts/ProblemNote';
import { Timestamp } from '../../time/Timestamp';
import { Card } from '../overview/Card';

/** Why jobs of this task died, the most frequent cause first. */
export function ErrorGroups({ task }: { task: string }) {
  const { data, error } = useQuery({
    queryKey: ['dead', 'task', task],
    queryFn: ({ signal }) => call('GET /dead', { query: { target: task }, signal }),
    refetchInterval: useRefresh(10_000),
  });
  if (error !== null) return <ProblemNote error={error} />;
  if (!data?.items.length) return null;
  return (
    <Card
      title="Errors"
      more={{ href: `/dead?target=${encodeURIComponent(task)}`, label: 'Dead letters of this task' }}
    >
      <Stack gap="xs">
        {data.items.map((group) => (
          <Group key={group.error} justify="space-between" wrap="nowrap" align="flex-start">
            <Anchor
              component={Link}
              href={`/jobs/${group.sample}`}
              size="sm"
              c="var(--mantine-color-text)"
              lineClamp={2}
            >
              {group.error || 'No error message'}
            </Anchor>
            <Text size="xs" c="dimmed" className="tabular" flex="none" component="div">
              {group.count.toLocaleString('en')} × · <Timestamp at={group.newest} show="relative" />
            </Text>
          </Group>
        ))}
      </Stack>
    </Card>
  );
}
