import { Grid, SegmentedControl, Skeleton, Stack } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { call } from '../../api/call';
import type { ReadStoreView } from '../../api/schema';
import { useRefresh } from '../../live/liveContext';
import { PageHeader } from '../../parts/PageHeader';
import { ProblemNote } from '../../parts/ProblemNote';
import { useUrlParams } from '../../parts/useUrlParams';
import { FailingList } from './FailingList';
import { SystemCards } from './SystemCards';
import { LateList } from './LateList';
import { LatenessChart } from './LatenessChart';
import { NextList } from './NextList';
import { OutcomeChart } from './OutcomeChart';
import { Tiles } from './Tiles';
import { Welcome } from './Welcome';

const PARAMS = ['since'] as const;
const STEPS: Record<string, '1m' | '5m' | '15m'> = { '15m': '1m', '1h': '1m', '6h': '5m', '24h': '15m' };
const DEFAULT_RANGE = '1h';

/** Where the numbers come from, if the service has a read replica. */
function sourceText(replica: ReadStoreView | null): string {
  if (replica === null) return '';
  return `; ${replica.remark ?? `from the read replica, ${((replica.lag_ms ?? 0) / 1000).toFixed(1)} s behind`}`;
}

export default function OverviewPage() {
  const [params, change] = useUrlParams(PARAMS);
  const since = params.since && STEPS[params.since] ? params.since : DEFAULT_RANGE;
  const {
    data: stats,
    error,
    refetch,
  } = useQuery({
    queryKey: ['stats', since],
    queryFn: ({ signal }) => call('GET /stats', { query: { since, step: STEPS[since] ?? '1m' }, signal }),
    refetchInterval: useRefresh(5_000),
    placeholderData: keepPreviousData,
  });
  return (
    <>
      <PageHeader
        title="Overview"
        description={`Running, waiting and failed jobs${sourceText(stats?.read_store ?? null)}`}
        actions={
          <SegmentedControl
            value={since}
            onChange={(next) => change({ since: next === DEFAULT_RANGE ? '' : next })}
            data={[
              { value: '15m', label: '15 min' },
              { value: '1h', label: '1 h' },
              { value: '6h', label: '6 h' },
              { value: '24h', label: '24 h' },
            ]}
            aria-label="Time range"
          />
        }
      />
      {error !== null && <ProblemNote error={error} onRetry={() => void refetch()} />}
      {stats === undefined ? (
        error === null && <Skeleton height={400} />
      ) : (
        <Stack>
          <Welcome stats={stats} />
          <Tiles live={stats.live} />
          <Grid gap="md">
            <Grid.Col span={{ base: 12, lg: 7 }}>
              <OutcomeChart series={stats.series} step={STEPS[since] ?? '1m'} />
            </Grid.Col>
            <Grid.Col span={{ base: 12, lg: 5 }}>
              <LatenessChart series={stats.series} />
            </Grid.Col>
            <Grid.Col span={{ base: 12, md: 6, lg: 4 }}>
              <FailingList failing={stats.failing} />
            </Grid.Col>
            <Grid.Col span={{ base: 12, md: 6, lg: 4 }}>
              <LateList late={stats.late} />
            </Grid.Col>
            <Grid.Col span={{ base: 12, md: 6, lg: 4 }}>
              <NextList next={stats.next} />
            </Grid.Col>
            <Grid.Col span={12}>
              <SystemCards leader={stats.leader} />
            </Grid.Col>
          </Grid>
        </Stack>
      )}
    </>
  );
}
