import { SegmentedControl, Skeleton, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { call } from '../../api/call';
import { asProblem } from '../../api/problem';
import { LazyChart } from '../../charts/LazyChart';
import { useRefresh } from '../../live/liveContext';
import { ProblemNote } from '../../parts/ProblemNote';
import { Card } from '../overview/Card';

const COLOURS = [
  'var(--mantine-primary-color-filled)',
  'var(--state-retrying)',
  'var(--state-succeeded)',
  'var(--state-dead)',
  'var(--state-pending)',
];
const COUNTS = [
  { value: 'due', label: 'Due' },
  { value: 'pending', label: 'Pending' },
  { value: 'running', label: 'Running' },
] as const;
type Count = (typeof COUNTS)[number]['value'];
const formatWhole = (value: number): string => (Number.isInteger(value) ? value.toLocaleString('en') : '');

const peakOf = (values: Array<number | null>): number => Math.max(0, ...values.map((value) => value ?? 0));

/** Jobs of the largest queues during the last hour. The history is for the operator's tenant only. */
export function DepthChart() {
  const [count, setCount] = useState<Count>('due');
  const { data, error, refetch } = useQuery({
    queryKey: ['queue depth'],
    queryFn: ({ signal }) => call('GET /stats/queues', { query: { since: '1h', step: '1m' }, signal }),
    refetchInterval: useRefresh(60_000),
  });
  const times = useMemo(() => data?.times.map((at) => Date.parse(at) / 1_000) ?? [], [data]);
  const lines = useMemo(
    () =>
      (data?.queues ?? [])
        .toSorted((a, b) => peakOf(b[count]) - peakOf(a[count]))
        .slice(0, COLOURS.length)
        .map((queue, index) => ({ label: queue.name, colour: COLOURS[index]!, values: queue[count] })),
    [data, count],
  );
  if (error !== null && asProblem(error).code === 'tenant_not_allowed') return null;
  const names = lines.map((line) => line.label).join(', ');
  return (
    <Card
      title="Queue depth in the last hour"
      actions={
        <SegmentedControl
          size="xs"
          value={count}
          onChange={(next) => setCount(next as Count)}
          data={[...COUNTS]}
          aria-label="Jobs shown"
        />
      }
    >
      {error !== null && <ProblemNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton height={226} />}
      {data?.queues.length === 0 && (
        <Text size="sm" c="dimmed">
          No jobs were counted in the last hour. The leader counts the jobs of each queue once a minute.
        </Text>
      )}
      {lines.length > 0 && (
        <LazyChart
          kind="lines"
          times={times}
          series={lines}
          format={formatWhole}
          label={`Jobs ${count} in the last hour, by queue: ${names}`}
        />
      )}
    </Card>
  );
}
