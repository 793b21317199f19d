import { Anchor, Group, Skeleton, Tabs } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { call } from '../../api/call';
import { useRefresh } from '../../live/liveContext';
import { CopyId } from '../../parts/CopyText';
import { JsonBlock } from '../../parts/JsonBlock';
import { PageHeader } from '../../parts/PageHeader';
import { ProblemNote } from '../../parts/ProblemNote';
import { StateBadge } from '../../parts/StateBadge';
import { useUrlParams } from '../../parts/useUrlParams';
import { stateOf } from '../schedules/scheduleFields';
import { ScheduleActions } from './ScheduleActions';
import { ScheduleEditor } from './ScheduleEditor';
import { ScheduleSummary } from './ScheduleSummary';
import { VersionList } from './VersionList';

const PARAMS = ['tab'] as const;
const DEFAULT_TAB = 'summary';

export default function SchedulePage({ params }: { params: { id: string } }) {
  const [{ tab = DEFAULT_TAB }, change] = useUrlParams(PARAMS);
  const {
    data: schedule,
    error,
    refetch,
  } = useQuery({
    queryKey: ['schedule', params.id],
    queryFn: ({ signal }) =>
      call('GET /schedules/{schedule_id}', { path: { schedule_id: params.id }, signal }),
    refetchInterval: useRefresh(15_000),
  });
  if (schedule === undefined)
    return error === null ? (
      <Skeleton height={320} />
    ) : (
      <ProblemNote error={error} onRetry={() => void refetch()} title="Could not load the schedule" />
    );
  return (
    <>
      <PageHeader
        name={schedule.name}
        title={
          <Group gap="sm">
            {schedule.name}
            <StateBadge state={stateOf(schedule)} />
          </Group>
        }
        description={
          <Group gap="sm">
            <Anchor component={Link} href="/schedules" size="sm">
              Schedules
            </Anchor>
            <CopyId id={schedule.id} full />
            <span>version {schedule.version}</span>
          </Group>
        }
        actions={<ScheduleActions schedule={schedule} />}
      />
      <Tabs
        value={tab}
        onChange={(next) => change({ tab: next === DEFAULT_TAB ? '' : (next ?? '') })}
        keepMounted={false}
      >
        <Tabs.List mb="md">
          <Tabs.Tab value={DEFAULT_TAB}>Summary</Tabs.Tab>
          <Tabs.Tab value="edit">Edit</Tabs.Tab>
          <Tabs.Tab value="versions">Versions</Tabs.Tab>
          <Tabs.Tab value="json">JSON</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value={DEFAULT_TAB}>
          <ScheduleSummary schedule={schedule} />
        </Tabs.Panel>
        <Tabs.Panel value="edit">
          <ScheduleEditor key={schedule.id} schedule={schedule} onSaved={() => change({ tab: '' })} />
        </Tabs.Panel>
        <Tabs.Panel value="versions">
          <VersionList schedule={schedule} />
        </Tabs.Panel>
        <Tabs.Panel value="json">
          <JsonBlock value={schedule} label="Schedule" />
        </Tabs.Panel>
      </Tabs>
    </>
  );
}
