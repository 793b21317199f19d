import { Group, Paper, SegmentedControl, Text, Title } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { call } from '../../api/call';
import type { JobRow } from '../../api/types';
import { useRefresh } from '../../live/liveContext';
import { plural } from '../../parts/plural';
import { ProblemNote } from '../../parts/ProblemNote';
import { serverNow } from '../../time/clock';
import { Lanes } from './Lanes';

const MAX_JOBS = 1_000;
const SPANS: Record<string, number> = { '15 min': 900_000, '1 h': 3_600_000, '6 h': 21_600_000 };

/** Past jobs and their durations, one line per schedule. */
export function PastTimeline() {
  const [span, setSpan] = useState('15 min');
  const { data, error } = useQuery({
    queryKey: ['timeline', span],
    queryFn: ({ signal }) => fetchPast(SPANS[span] ?? 0, signal),
    refetchInterval: useRefresh(10_000),
    placeholderData: keepPreviousData,
  });
  return (
    <Paper withBorder p="lg" component="section" aria-label="Past jobs">
      <Group justify="space-between" mb="sm">
        <Title order={2} size="h5">
          Past jobs
        </Title>
        <SegmentedControl
          size="xs"
          value={span}
          onChange={setSpan}
          data={Object.keys(SPANS)}
          aria-label="Time range"
        />
      </Group>
      {error !== null && <ProblemNote error={error} />}
      {data?.jobs.length === 0 && (
        <Text size="sm" c="dimmed">
          No jobs ran in this time range.
        </Text>
      )}
      {data && data.jobs.length > 0 && <Lanes jobs={data.jobs} from={data.from} to={data.to} />}
      {data?.more && (
        <Text size="xs" c="dimmed" mt="xs">
          Only the last {plural(MAX_JOBS, 'job')} are shown.
        </Text>
      )}
    </Paper>
  );
}

async function fetchPast(
  duration: number,
  signal: AbortSignal,
): Promise<{ from: number; to: number; jobs: JobRow[]; more: boolean }> {
  const to = serverNow();
  const from = to - duration;
  const page = await call('GET /jobs', {
    query: {
      due_after: new Date(from).toISOString(),
      due_before: new Date(to).toISOString(),
      limit: MAX_JOBS,
    },
    signal,
  });
  return {
    from,
    to,
    jobs: page.items.filter((job) => job.started_at !== null || job.state === 'running'),
    more: page.next_cursor !== null,
  };
}
