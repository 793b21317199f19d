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
            <Anchor component={Link} href={`/jobs?schedule=${encodeURIComponent(schedule.name)}`} size="sm">
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
        <JobList
          label={`Jobs of ${schedule.name}`}
          jobs={data?.items.slice(0, MAX_JOBS) ?? []}
          selection={selection}
        />
      </Paper>
      <RunsChart jobs={data?.items ?? []} />
      {compared !== null && <CompareDialog ids={compared} onClose={() => setCompared(null)} />}
    </>
  );
}
