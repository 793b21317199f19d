import { Alert, Skeleton, Stack } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { call } from '../../api/call';
import { useRefresh } from '../../live/liveContext';
import { Icon } from '../../parts/Icon';
import { PageHeader } from '../../parts/PageHeader';
import { ProblemNote } from '../../parts/ProblemNote';
import { useUrlParams } from '../../parts/useUrlParams';
import { serverNow } from '../../time/clock';
import { useViewerZone } from '../../time/viewerZone';
import { HeatMap } from './HeatMap';
import { HourView } from './HourView';
import { PastTimeline } from './PastTimeline';
import { DAYS, weekFrom } from './week';

const PARAMS = ['hour', 'minute'] as const;

export default function CalendarPage() {
  const zone = useViewerZone();
  const [{ hour, minute }, change] = useUrlParams(PARAMS);
  const week = weekFrom(serverNow(), zone);
  const { data, error, refetch } = useQuery({
    queryKey: ['calendar', 'week', week.from, zone],
    queryFn: ({ signal }) =>
      call('GET /calendar', { query: { from: week.from, to: week.to, bucket: '1h', tz: zone }, signal }),
    refetchInterval: useRefresh(60_000),
    placeholderData: keepPreviousData,
  });
  return (
    <>
      <PageHeader title="Calendar" description={`Fires of the next ${DAYS} days, in ${zone}`} />
      <Stack>
        {error !== null && <ProblemNote error={error} onRetry={() => void refetch()} />}
        {data && !data.complete && (
          <Alert color="yellow" icon={<Icon name="warning" />}>
            {data.note ?? 'There are too many fires to count. The numbers are incomplete.'}
          </Alert>
        )}
        {data ? (
          <HeatMap
            buckets={data.buckets}
            days={week.days}
            zone={zone}
            selected={hour ?? null}
            onSelect={(at) => change({ hour: at, minute: '' })}
          />
        ) : (
          error === null && <Skeleton height={280} />
        )}
        {hour && (
          <HourView
            key={hour}
            hour={hour}
            minute={minute ?? null}
            onMinute={(at) => change({ minute: at })}
            onClose={() => change({ hour: '', minute: '' })}
          />
        )}
        <PastTimeline />
      </Stack>
    </>
  );
}
