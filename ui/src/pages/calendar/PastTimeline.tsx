import { Group, Paper, SegmentedControl, Text, Title } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { call } from '../../api/call';
import type { JobRow } from '../../api/types';
import { useRefresh } from '../../live/liveContext';
import { ProblemNote } from '../../parts/ProblemNote';
import { serverNow } from '../../time/clock';
import { Lanes } from './Lanes';

const MOST = 1_000;
const SPANS: Record<string, number> = { '15 min': 900_000, '1 h': 3_600_000, '6 h': 21_600_000 };

/** What ran, and for how long, one line per schedule. */
export function PastTimeline() {
  const [span, setSpan] = useState('15 min');
  const { data, error } = useQuery({
    queryKey: ['timeline', span],
    queryFn: ({ signal }) => fetchPast(SPANS[span] ?? 0, signal),
    refetchInterval: useRefresh(10_000),
    placeholderData: keepPreviousData,
  });
  return (
    <Paper withBorder p="lg" component="section" aria-label="What ran">
      <Group justify="space-between" mb="sm">
        <Title order={2} size="h5">
          What ran
        </Title>
        <SegmentedControl size="xs" value={span} onChange={setSpan} data={Object.keys(SPANS)} aria-label="Time shown" />
      </Group>
      {error !== null && <ProblemNote error={error} />}
      {data?.jobs.length === 0 && (
        <Text size="sm" c="dimmed">
          Nothing ran in this time.
        </Text>
      )}
      {data && data.jobs.length > 0 && <Lanes jobs={data.jobs} from={data.from} to={data.to} />}
      {data?.more && (
        <Text size="xs" c="dimmed" mt="xs">
          These are the last {MOST.toLocaleString('en')} jobs; there were more.
        </Text>
      )}
    </Paper>
  );
}

async function fetchPast(lapse: number, signal: AbortSignal): Promise<{ from: number; to: number; jobs: JobRow[]; more: boolean }> {
  const to = serverNow();
  const from = to - lapse;
  const page = await call('GET /jobs', { query: { due_after: new Date(from).toISOString(), due_before: new Date(to).toISOString(), limit: MOST }, signal });
  return { from, to, jobs: page.items.filter((job) => job.started_at !== null || job.state === 'running'), more: page.next_cursor !== null };
}
