import { Paper, SimpleGrid, Text, Title } from '@mantine/core';
import { useMemo } from 'react';
import type { JobRow } from '../api/types';
import { lapsesOf } from '../parts/lapses';
import { formatDuration } from '../time/format';
import { LazyChart } from './LazyChart';

const MIN_RUNS = 2;

/** Duration and lateness of the latest jobs that have run, oldest first. */
export function RunsChart({ jobs }: { jobs: readonly JobRow[] }) {
  const runs = useMemo(
    () =>
      jobs
        .filter((job) => job.started_at !== null && job.finished_at !== null)
        .toSorted((a, b) => Date.parse(a.started_at!) - Date.parse(b.started_at!)),
    [jobs],
  );
  const times = useMemo(() => runs.map((job) => Date.parse(job.started_at!) / 1_000), [runs]);
  if (runs.length < MIN_RUNS) return null;
  const lapses = runs.map(lapsesOf);
  return (
    <Paper withBorder p="lg" component="section" aria-label="Duration and lateness">
      <Title order={2} size="h5">
        Duration and lateness
      </Title>
      <Text size="sm" c="dimmed" mb="sm">
        The latest {runs.length} jobs that have run
      </Text>
      <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="md">
        <LazyChart
          label="Duration of the latest jobs"
          times={times}
          kind="lines"
          format={formatDuration}
          height={140}
          series={[
            {
              label: 'Duration',
              colour: 'var(--state-running)',
              values: lapses.map((lapse) => lapse.duration),
            },
          ]}
        />
        <LazyChart
          label="Lateness of the latest jobs"
          times={times}
          kind="lines"
          format={formatDuration}
          height={140}
          series={[
            {
              label: 'Lateness',
              colour: 'var(--state-retrying)',
              values: lapses.map((lapse) => lapse.lateness),
            },
          ]}
        />
      </SimpleGrid>
    </Paper>
  );
}
