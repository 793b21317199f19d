import { Alert, Grid, Paper, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { call } from '../../api/call';
import type { Schedule, Task } from '../../api/types';
import { useRefresh } from '../../live/liveContext';
import { Facts } from '../../parts/Facts';
import { Icon } from '../../parts/Icon';
import { JsonBlock } from '../../parts/JsonBlock';
import { LabelList } from '../../parts/LabelList';
import { ProblemNote } from '../../parts/ProblemNote';
import { TargetLink } from '../../parts/TargetText';
import { timeoutText } from '../../parts/timeoutText';
import { useTaskOf } from '../../parts/useTask';
import { WhyNote } from '../../parts/WhyNote';
import { Timestamp } from '../../time/Timestamp';
import { useViewerZone } from '../../time/viewerZone';
import { expressionOf, zoneOf } from '../schedules/scheduleFields';
import { DiffTable } from './DiffTable';
import { FireList } from './FireList';
import { RecentJobs } from './RecentJobs';

const MAX_FIRES = 10;

export function ScheduleSummary({ schedule }: { schedule: Schedule }) {
  const path = { schedule_id: schedule.id };
  const refresh = useRefresh(15_000);
  const viewer = useViewerZone();
  const declared = useTaskOf(schedule.target);
  const why = useQuery({
    queryKey: ['schedule-why', schedule.id, viewer],
    queryFn: ({ signal }) =>
      call('GET /schedules/{schedule_id}/why', { path, query: { tz: viewer }, signal }),
    refetchInterval: refresh,
  });
  const preview = useQuery({
    queryKey: ['schedule', schedule.id, 'fires', schedule.version],
    queryFn: ({ signal }) =>
      call('POST /preview', {
        body: {
          when: schedule.when as never,
          count: MAX_FIRES,
          ...(schedule.start_at && { start_at: schedule.start_at }),
          ...(schedule.end_at && { end_at: schedule.end_at }),
        },
        signal,
      }),
    refetchInterval: refresh,
  });
  return (
    <Stack>
      {why.data && <WhyNote why={why.data} />}
      {schedule.warning !== null && (
        <Alert color="yellow" icon={<Icon name="warning" />} p="xs">
          {schedule.warning}
        </Alert>
      )}
      <Grid gap="md">
        <Grid.Col span={{ base: 12, md: 7 }}>
          <Stack>
            {schedule.drift !== null && schedule.drift.length > 0 && (
              <Paper withBorder p="lg">
                <Title order={2} size="h5">
                  Differs from the code
                </Title>
                <Text size="sm" c="dimmed" mb="sm">
                  A program declares this schedule, and it was edited since.
                </Text>
                <DiffTable diff={schedule.drift} columns={['In code', 'Stored']} />
              </Paper>
            )}
            <RecentJobs schedule={schedule} />
            {schedule.payload != null && (
              <Paper withBorder p="lg">
                <Title order={2} size="h5" mb="sm">
                  Payload
                </Title>
                <JsonBlock value={schedule.payload} label="Payload" />
              </Paper>
            )}
          </Stack>
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 5 }}>
          <Stack>
            <Paper withBorder p="lg">
              <Title order={2} size="h5">
                Next fires
              </Title>
              <Text size="sm" c="dimmed" mb="xs">
                {preview.data?.words ?? schedule.description}
              </Text>
              {preview.error !== null && <ProblemNote error={preview.error} />}
              {schedule.paused ? (
                <Text size="sm">The schedule is paused.</Text>
              ) : (
                preview.data && <FireList fires={preview.data.fires} zone={zoneOf(schedule) ?? viewer} />
              )}
            </Paper>
            <Paper withBorder p="lg">
              <Facts facts={factsOf(schedule, declared)} />
            </Paper>
          </Stack>
        </Grid.Col>
      </Grid>
    </Stack>
  );
}

function factsOf(schedule: Schedule, declared: Task | undefined): Array<[string, React.ReactNode]> {
  const missed = schedule.missed as { policy?: string; within?: string; waiting?: boolean };
  return [
    ['Target', <TargetLink key="target" target={schedule.target} />],
    ['Expression', <code key="when">{expressionOf(schedule.when)}</code>],
    ['Queue', `${schedule.queue}, priority ${schedule.priority}`],
    ['Overlap', schedule.overlap.replaceAll('_', ' ')],
    [
      'Missed fires',
      [
        missed.policy,
        missed.within && `within ${missed.within}`,
        missed.waiting && 'also if they wait for a limit',
      ]
        .filter(Boolean)
        .join(' '),
    ],
    ['Delivery', schedule.delivery.replaceAll('_', ' ')],
    ['Timeout', timeoutText(schedule, declared)],
    ['Jitter', schedule.jitter],
    ['Expires', schedule.expires ? `${schedule.expires} after it is due` : 'never'],
    [
      'Runs so far',
      `${schedule.runs.toLocaleString('en')}${schedule.max_runs ? ` of ${schedule.max_runs.toLocaleString('en')}` : ''}`,
    ],
    ['Last fire', <Timestamp key="last" at={schedule.last_fire_time} show="both" />],
    ['Owner', schedule.owner ?? 'none'],
    [
      'Labels',
      Object.keys(schedule.labels).length ? <LabelList key="labels" labels={schedule.labels} /> : 'none',
    ],
    ['Updated', <Timestamp key="changed" at={schedule.updated_at} />],
  ];
}
