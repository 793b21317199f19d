import { Anchor, Button, Group, Paper, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import { call } from '../../api/call';
import type { Schedule } from '../../api/types';
import { RunsChart } from '../../charts/RunsChart';
import { useRefresh } from '../../live/liveContext';
import { JobList } from '../../parts/JobList';
import { ProblemNote } from '../../parts/ProblemNote';
import { useSelection } from '../../parts/useSelection';
import { CompareDialog } from './CompareDialog';

const MAX_JOBS = 15;
const MAX_CHARTED = 100;

/** The latest jobs of the schedule; two of them can be compared. */
export function RecentJobs({ schedule }: { schedule: Schedule }) {
  const { data, error } = useQuery({
    queryKey: ['schedule-runs', schedule.name, 'list'],
    queryFn: ({ signal }) =>
      call('GET /schedules/{schedule_id}/jobs', {
        path: { schedule_id: schedule.id },
        query: { limit: MAX_CHARTED },
        signal,
      }),
    refetchInterval: useRefresh(5_000),
  });
  const selection = useSelection(schedule.id);
  const [compared, setCompared] = useState<[string, string] | null>(null);
  const [first, second] = selection.ids;
  const jobs = data?.items ?? [];
  const skipped = jobs.filter((job) => job.state === 'skipped').length;
  const allJobs = `/jobs?schedule=${encodeURIComponent(schedule.name)}`;
  return (
    <>
      <Paper withBorder p="lg">
        <Group justify="space-between" mb="xs">
          <Title order={2} size="h5">
            Jobs
          </Title>
          <Group gap="sm">
            {first !== undefined && (
              <Button
                size="compact-sm"
                variant="default"
                disabled={selection.size !== 2 || second === undefined}
                onClick={() => setCompared([first, second!])}
              >
                {selection.size === 2 ? 'Compare' : 'Select two to compare'}
              </Button>
            )}
            {skipped > 0 && (
              <Anchor component={Link} href={`${allJobs}&state=skipped`} size="sm">
                {skipped} of the last {jobs.length} skipped
              </Anchor>
            )}
            <Anchor component={Link} href={allJobs} size="sm">
              All jobs of this schedule
            </Anchor>
          </Group>
        </Group>
        {error !== null && <ProblemNote error={error} />}
        {data?.items.length === 0 && (
          <Text size="sm" c="dimmed">
            No jobs yet. The first one appears shortly before it is due.
          </Text>
        )}
        <JobList label={`Jobs of ${schedule.name}`} jobs={jobs.slice(0, MAX_JOBS)} selection={selection} />
      </Paper>
      <RunsChart jobs={jobs} />
      {compared !== null && <CompareDialog ids={compared} onClose={() => setCompared(null)} />}
    </>
  );
}
