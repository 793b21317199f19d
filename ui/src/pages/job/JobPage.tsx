import { Anchor, Grid, Group, Paper, Skeleton, Stack, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { call } from '../../api/call';
import type { Job } from '../../api/types';
import { useRefresh } from '../../live/liveContext';
import { CopyId } from '../../parts/CopyText';
import { PageHeader } from '../../parts/PageHeader';
import { ProblemNote } from '../../parts/ProblemNote';
import { JobStateBadge } from '../../parts/StateBadge';
import { TargetText, targetText } from '../../parts/TargetText';
import { WhyNote } from '../../parts/WhyNote';
import { useViewerZone } from '../../time/viewerZone';
import { JobFacts } from './facts';
import { JobActions } from './JobActions';
import { JobData } from './JobData';
import { JobError } from './JobError';
import { JobOutput } from './JobOutput';
import { JobProgress } from './JobProgress';
import { Timeline } from './Timeline';

const FINAL_STATES: ReadonlyArray<Job['state']> = ['succeeded', 'dead', 'cancelled', 'skipped'];

export default function JobPage({ params }: { params: { id: string } }) {
  const path = { job_id: params.id };
  const tz = useViewerZone();
  const refreshInterval = useRefresh(3_000);
  const {
    data: job,
    error,
    refetch,
  } = useQuery({
    queryKey: ['job', params.id],
    queryFn: ({ signal }) => call('GET /jobs/{job_id}', { path, signal }),
    refetchInterval: (query) =>
      query.state.data && FINAL_STATES.includes(query.state.data.state) ? false : refreshInterval,
  });
  const why = useQuery({
    queryKey: ['job-why', params.id, job?.state, tz],
    queryFn: ({ signal }) => call('GET /jobs/{job_id}/why', { path, query: { tz }, signal }),
    enabled: job !== undefined,
  });
  if (job === undefined)
    return error === null ? (
      <Skeleton height={320} />
    ) : (
      <ProblemNote error={error} onRetry={() => void refetch()} title="Could not load the job" />
    );
  return (
    <>
      <PageHeader
        name={`${targetText(job.target)} ${job.state}`}
        title={
          <Group gap="sm">
            <TargetText target={job.target} />
            <JobStateBadge job={job} />
          </Group>
        }
        description={
          <Group gap="sm">
            <Anchor component={Link} href="/jobs" size="sm">
              Jobs
            </Anchor>
            <CopyId id={job.id} full />
          </Group>
        }
        actions={<JobActions job={job} />}
      />
      <Stack>
        {why.data && <WhyNote why={why.data} />}
        <JobProgress progress={job.progress} />
        <Grid gap="md">
          <Grid.Col span={{ base: 12, md: 7 }}>
            <Stack>
              {job.error && <JobError error={job.error} succeeded={job.state === 'succeeded'} />}
              <JobOutput job={job} />
              <JobData job={job} />
            </Stack>
          </Grid.Col>
          <Grid.Col span={{ base: 12, md: 5 }}>
            <Stack>
              <Paper withBorder p="lg">
                <Title order={2} size="h5" mb="md">
                  History
                </Title>
                <Timeline job={job} />
              </Paper>
              <Paper withBorder p="lg">
                <JobFacts job={job} />
              </Paper>
            </Stack>
          </Grid.Col>
        </Grid>
      </Stack>
    </>
  );
}
