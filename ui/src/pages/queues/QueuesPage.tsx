import { Anchor, Button, Group, Paper, Skeleton, Stack, Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import { call } from '../../api/call';
import type { Queue } from '../../api/types';
import { useRefresh } from '../../live/liveContext';
import { EmptyState } from '../../parts/EmptyState';
import { PageHeader } from '../../parts/PageHeader';
import { ProblemNote } from '../../parts/ProblemNote';
import { StateBadge } from '../../parts/StateBadge';
import { useHasScope } from '../../session/sessionContext';
import { Timestamp } from '../../time/Timestamp';
import { PauseDialog } from '../schedule/PauseDialog';
import { DepthChart } from './DepthChart';
import { LimitDialog } from './LimitDialog';
import { useQueueActions } from './useQueueActions';

export default function QueuesPage() {
  const { data, error, refetch } = useQuery({
    queryKey: ['queues'],
    queryFn: ({ signal }) => call('GET /queues', { signal }),
    refetchInterval: useRefresh(5_000),
  });
  const [limiting, setLimiting] = useState<Queue | null>(null);
  const [pausing, setPausing] = useState<string | null>(null);
  const actions = useQueueActions();
  return (
    <>
      <PageHeader
        title="Queues"
        description="Workers take jobs from queues. Pausing a queue does not change its schedules."
      />
      {error !== null && <ProblemNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton height={160} />}
      {data?.items.length === 0 && (
        <EmptyState icon="queue" title="No queues yet">
          A queue is created with its first job. Jobs without a queue use <code>default</code>.
        </EmptyState>
      )}
      {data && data.items.length > 0 && (
        <Stack>
          <Paper withBorder>
            <Table.ScrollContainer minWidth={640}>
              <Table aria-label="Queues">
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>Queue</Table.Th>
                    <Table.Th>State</Table.Th>
                    <Table.Th ta="right">Running</Table.Th>
                    <Table.Th ta="right">Due</Table.Th>
                    <Table.Th ta="right">Pending</Table.Th>
                    <Table.Th>Limits</Table.Th>
                    <Table.Th aria-label="Actions" />
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {data.items.map((queue) => (
                    <QueueRow
                      key={queue.name}
                      queue={queue}
                      onLimit={() => setLimiting(queue)}
                      onPause={() => setPausing(queue.name)}
                      onResume={() => actions.resume(queue.name)}
                    />
                  ))}
                </Table.Tbody>
              </Table>
            </Table.ScrollContainer>
          </Paper>
          <DepthChart />
        </Stack>
      )}
      {limiting !== null && <LimitDialog queue={limiting} onClose={() => setLimiting(null)} />}
      {pausing !== null && (
        <PauseDialog
          subject={`Queue ${pausing}`}
          title={`Pause queue ${pausing}`}
          onClose={() => setPausing(null)}
          onPause={(note) => actions.pause(pausing, note)}
        />
      )}
    </>
  );
}

function limitsOf({ max_running: maxRunning, rate }: Queue): string {
  return [maxRunning && `max ${maxRunning} running`, rate].filter(Boolean).join(', ') || 'none';
}

interface QueueRowProps {
  queue: Queue;
  onLimit: () => void;
  onPause: () => void;
  onResume: () => void;
}

function QueueRow({ queue, onLimit, onPause, onResume }: QueueRowProps) {
  const canManage = useHasScope('manage');
  return (
    <Table.Tr>
      <Table.Td>
        <Anchor
          component={Link}
          href={`/jobs?queue=${encodeURIComponent(queue.name)}`}
          fw={550}
          size="sm"
          c="var(--mantine-color-text)"
        >
          {queue.name}
        </Anchor>
      </Table.Td>
      <Table.Td>
        <StateBadge state={queue.paused ? 'paused' : 'active'} />
        {queue.paused && (
          <Text size="xs" c="dimmed" component="div">
            since <Timestamp at={queue.paused_at} />
            {queue.pause_note && `: ${queue.pause_note}`}
          </Text>
        )}
      </Table.Td>
      <Table.Td ta="right" className="tabular">
        {queue.running.toLocaleString('en')}
      </Table.Td>
      <Table.Td ta="right" className="tabular">
        {queue.due.toLocaleString('en')}
      </Table.Td>
      <Table.Td ta="right" className="tabular">
        {queue.pending.toLocaleString('en')}
      </Table.Td>
      <Table.Td>
        <Text size="sm" c="dimmed">
          {limitsOf(queue)}
        </Text>
      </Table.Td>
      <Table.Td ta="right">
        <Group gap="xs" justify="flex-end" wrap="nowrap">
          <Button
            size="xs"
            variant="default"
            disabled={!canManage}
            onClick={onLimit}
            aria-label={`Limits of ${queue.name}`}
          >
            Limits
          </Button>
          <Button
            size="xs"
            variant="default"
            disabled={!canManage}
            onClick={queue.paused ? onResume : onPause}
            aria-label={`${queue.paused ? 'Resume' : 'Pause'} ${queue.name}`}
          >
            {queue.paused ? 'Resume' : 'Pause'}
          </Button>
        </Group>
      </Table.Td>
    </Table.Tr>
  );
}
