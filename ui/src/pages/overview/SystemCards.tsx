import { Group, Progress, SimpleGrid, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { call } from '../../api/call';
import { useRefresh } from '../../live/liveContext';

import { StateBadge } from '../../parts/StateBadge';
import { aliveFirst } from '../../parts/aliveFirst';
import { useNodes } from '../../parts/useNodes';
import { Card } from './Card';
import classes from './SystemCards.module.css';

/** The depth of each queue, and the nodes. */
export function SystemCards({ leader }: { leader: number | null }) {
  const refresh = useRefresh(5_000);
  const queues = useQuery({
    queryKey: ['queues'],
    queryFn: ({ signal }) => call('GET /queues', { signal }),
    refetchInterval: refresh,
  });
  const { nodes } = useNodes();
  const max = Math.max(1, ...(queues.data?.items.map((queue) => queue.pending + queue.running) ?? []));
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
      <Card title="Queue depth" more={{ href: '/queues', label: 'Queues' }}>
        <Stack gap="xs">
          {queues.data?.items.map((queue) => (
            <div key={queue.name} className={classes.queue}>
              <Text size="sm" truncate>
                {queue.name}
              </Text>
              <Progress.Root
                size={10}
                role="img"
                aria-label={`${queue.name}: ${queue.running} running, ${queue.pending} pending`}
              >
                <Progress.Section
                  value={(100 * queue.running) / max}
                  color="var(--state-running)"
                  withAria={false}
                />
                <Progress.Section
                  value={(100 * queue.due) / max}
                  color="var(--state-retrying)"
                  withAria={false}
                />
                <Progress.Section
                  value={(100 * (queue.pending - queue.due)) / max}
                  color="var(--state-pending)"
                  withAria={false}
                />
              </Progress.Root>
              <Text size="xs" c="dimmed" className="tabular">
                {queue.paused ? 'paused · ' : ''}
                {queue.running.toLocaleString('en')} running · {queue.due.toLocaleString('en')} due ·{' '}
                {queue.pending.toLocaleString('en')} pending
              </Text>
            </div>
          ))}
        </Stack>
      </Card>
      <Card title="Nodes" more={{ href: '/nodes', label: 'Nodes' }}>
        <Stack gap="xs">
          {aliveFirst(nodes ?? []).map((node) => (
            <Group key={node.id} justify="space-between" wrap="nowrap">
              <Group gap="xs" wrap="nowrap" miw={0}>
                <StateBadge state={node.state} />
                <Text size="sm" truncate component={Link} href="/nodes" c="inherit" td="none">
                  {node.name}
                </Text>
                {node.id === leader && (
                  <Text size="xs" c="dimmed">
                    leader
                  </Text>
                )}
              </Group>
              <Text size="xs" c="dimmed" className="tabular">
                {node.running} running
              </Text>
            </Group>
          ))}
        </Stack>
      </Card>
    </SimpleGrid>
  );
}
