import { Anchor, Group, Paper, Table, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { call } from '../../api/call';
import type { Schedule } from '../../api/types';
import { useRefresh } from '../../live/liveContext';
import { CopyId } from '../../parts/CopyText';
import { errorLine } from '../../parts/errorLine';
import { ProblemNote } from '../../parts/ProblemNote';
import { JobStateBadge } from '../../parts/StateBadge';
import { Elapsed } from '../../time/Elapsed';
import { Timestamp } from '../../time/Timestamp';

const MAX_JOBS = 15;

export function RecentJobs({ schedule }: { schedule: Schedule }) {
  const { data, error } = useQuery({
    queryKey: ['schedule-runs', schedule.name, 'list'],
    queryFn: ({ signal }) =>
      call('GET /schedules/{schedule_id}/jobs', {
        path: { schedule_id: schedule.id },
        query: { limit: MAX_JOBS },
        signal,
      }),
    refetchInterval: useRefresh(5_000),
  });
  return (
    <Paper withBorder p="lg">
      <Group justify="space-between" mb="xs">
        <Title order={2} size="h5">
          Jobs
        </Title>
        <Anchor component={Link} href={`/jobs?schedule=${encodeURIComponent(schedule.name)}`} size="sm">
          All jobs of this schedule
        </Anchor>
      </Group>
      {error !== null && <ProblemNote error={error} />}
      {data?.items.length === 0 && (
        <Text size="sm" c="dimmed">
          No jobs yet. The first one appears shortly before it is due.
        </Text>
      )}
      <Table horizontalSpacing={0} aria-label={`Jobs of ${schedule.name}`}>
        <Table.Tbody>
          {data?.items.map((job) => (
            <Table.Tr key={job.id}>
              <Table.Td w={110}>
                <JobStateBadge job={job} />
              </Table.Td>
              <Table.Td>
                <Anchor component={Link} href={`/jobs/${job.id}`} size="sm" c="var(--mantine-color-text)">
                  <Timestamp at={job.fire_time} />
                </Anchor>
                {job.error && (
                  <Text size="xs" c="dimmed" lineClamp={1}>
                    {errorLine(job.error)}
                  </Text>
                )}
              </Table.Td>
              <Table.Td w={80} ta="right">
                <Elapsed from={job.started_at} to={job.finished_at} />
              </Table.Td>
              <Table.Td w={110} ta="right" visibleFrom="xs">
                <CopyId id={job.id} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Paper>
  );
}
