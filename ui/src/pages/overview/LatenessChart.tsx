import { useMemo } from 'react';
import type { Stats } from '../../api/types';
import { LazyChart } from '../../charts/LazyChart';
import { formatDuration } from '../../time/format';
import { Card } from './Card';

const formatLateness = (value: number): string =>
  value > 0 && value < 10 ? `${value.toFixed(1)} ms` : formatDuration(value);

/** Lateness: the time between the due time and the start of a job. */
export function LatenessChart({ series }: { series: Stats['series'] }) {
  const times = useMemo(() => series.map((point) => Date.parse(point.at) / 1_000), [series]);
  const lines = useMemo(
    () => [
      {
        label: 'Median',
        colour: 'var(--mantine-primary-color-filled)',
        values: series.map((point) => point.lateness_p50_ms),
      },
      {
        label: '99th percentile',
        colour: 'var(--state-retrying)',
        values: series.map((point) => point.lateness_p99_ms),
      },
    ],
    [series],
  );
  return (
    <Card title="Lateness">
      <LazyChart
        kind="lines"
        times={times}
        series={lines}
        format={formatLateness}
        label="Lateness of job starts, median and 99th percentile"
        height={220}
      />
    </Card>
  );
}
