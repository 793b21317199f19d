import { useMemo } from 'react';
import type { Stats } from '../../api/types';
import { LazyChart } from '../../charts/LazyChart';
import { lasting } from '../../time/format';
import { Card } from './Card';

const short = (value: number): string => (value > 0 && value < 10 ? `${value.toFixed(1)} ms` : lasting(value));

/** How long after its due time a job starts: the promise of a scheduler in one figure. */
export function LatenessChart({ series }: { series: Stats['series'] }) {
  const times = useMemo(() => series.map((point) => Date.parse(point.at) / 1_000), [series]);
  const lines = useMemo(
    () => [
      { label: 'Median', colour: 'var(--mantine-primary-color-filled)', values: series.map((point) => point.lateness_p50_ms) },
      { label: '99 of 100 within', colour: 'var(--state-retrying)', values: series.map((point) => point.lateness_p99_ms) },
    ],
    [series],
  );
  return (
    <Card title="Started after due">
      <LazyChart kind="lines" times={times} series={lines} format={short} label="How late jobs start, median and 99th percentile" height={220} />
    </Card>
  );
}
