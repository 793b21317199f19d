import { Anchor, Grid, Group, Skeleton, Stack, Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { call } from '../../api/call';
import type { Task } from '../../api/types';
import { RunsChart } from '../../charts/RunsChart';
import { useRefresh } from '../../live/liveContext';
import { EmptyState } from '../../parts/EmptyState';
import { Facts } from '../../parts/Facts';
import { JobList } from '../../parts/JobList';
import { PageHeader } from '../../parts/PageHeader';
import { ProblemNote } from '../../parts/ProblemNote';
import { useTasks } from '../../parts/useTask';
import { Card } from '../overview/Card';
import { ErrorGroups } from './ErrorGroups';
import { SubmitForm } from './SubmitForm';

const MAX_JOBS = 15;
const MAX_CHARTED = 100;

export default function TaskPage({ params }: { params: { id: string } }) {
  const tasks = useTasks();
  const task = tasks?.find((known) => known.name === params.id);
  const { data, error } = useQuery({
    queryKey: ['jobs', 'task', params.id],
    queryFn: ({ signal }) => call('GET /jobs', { query: { target: params.id, limit: MAX_CHARTED }, signal }),
    refetchInterval: useRefresh(5_000),
  });
  if (tasks === undefined) return <Skeleton height={320} />;
  return (
    <>
      <PageHeader
        name={params.id}
        title={<span className="mono">{params.id}</span>}
        description={
          <Group gap="sm">
            <Anchor component={Link} href="/tasks" size="sm">
              Tasks
            </Anchor>
            <span>{task?.doc}</span>
          </Group>
        }
      />
      {task === undefined && (
        <EmptyState icon="code" title="No running node has this task">
          Its jobs wait until a node that knows it starts.
        </EmptyState>
      )}
      <Grid gap="md">
        <Grid.Col span={{ base: 12, md: 7 }}>
          <Stack>
            {error !== null && <ProblemNote error={error} />}
            <ErrorGroups task={params.id} />
            <Card
              title="Recent jobs"
              more={{
                href: `/jobs?target=${encodeURIComponent(params.id)}`,
                label: 'All jobs of this task',
              }}
            >
              {data?.items.length === 0 && (
                <Text size="sm" c="dimmed">
                  No jobs yet.
                </Text>
              )}
              <JobList label={`Jobs of ${params.id}`} jobs={data?.items.slice(0, MAX_JOBS) ?? []} />
            </Card>
            <RunsChart jobs={data?.items ?? []} />
          </Stack>
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 5 }}>
          <Stack>
            {task && <SubmitForm task={task} />}
            {task && <Arguments task={task} />}
            {task && (
              <Card title="Settings">
                <Facts facts={settingsOf(task)} />
              </Card>
            )}
          </Stack>
        </Grid.Col>
      </Grid>
    </>
  );
}

function Arguments({ task }: { task: Task }) {
  return (
    <Card title="Arguments">
      {task.arguments.length === 0 ? (
        <Text size="sm" c="dimmed">
          None.
        </Text>
      ) : (
        <Table horizontalSpacing={0} aria-label="Arguments">
          <Table.Tbody>
            {task.arguments.map((argument) => (
              <Table.Tr key={argument.name}>
                <Table.Td className="mono">{argument.name}</Table.Td>
                <Table.Td className="mono">{argument.type ?? 'any'}</Table.Td>
                <Table.Td c="dimmed">
                  {argument.required ? 'required' : `default ${JSON.stringify(argument.default)}`}
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
    </Card>
  );
}

interface Retry {
  max_attempts?: number;
  first_delay?: string;
  max_delay?: string;
  delays?: string[];
  delay?: string;
  retry_on?: string[];
  give_up_on?: string[];
}

function attemptsOf(retry: Retry): string {
  const delays = retry.delays?.join(', ') ?? `${retry.first_delay} to ${retry.max_delay}`;
  return [
    String(retry.max_attempts),
    retry.delay ? `delays from ${retry.delay}()` : `with delays of ${delays}`,
    retry.retry_on && `only after ${retry.retry_on.join(', ') || 'no error'}`,
    retry.give_up_on && `not after ${retry.give_up_on.join(', ')}`,
  ]
    .filter(Boolean)
    .join(', ');
}

function settingsOf(task: Task): Array<[string, ReactNode]> {
  const limits = [task.max_running && `max ${task.max_running} running`, task.rate]
    .filter(Boolean)
    .join(', ');
  return [
    ['Queue', `${task.queue ?? '–'}, priority ${task.priority ?? '–'}`],
    ['Timeout', task.timeout ?? 'none'],
    ['Delivery', task.delivery?.replaceAll('_', ' ') ?? '–'],
    ['Attempts', task.retry ? attemptsOf(task.retry as Retry) : '–'],
    ['Limits', limits ? `${limits}${task.limited_per ? ` for each ${task.limited_per}` : ''}` : 'none'],
  ];
}
