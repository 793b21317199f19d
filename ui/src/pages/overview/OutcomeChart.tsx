import { useMemo } from 'react';
import type { Stats } from '../../api/types';
import { LazyChart } from '../../charts/LazyChart';
import { Card } from './Card';

const OUTCOMES = [
  ['Succeeded', 'succeeded', 'var(--state-succeeded)'],
  ['Retried', 'retried', 'var(--state-retrying)'],
  ['Dead', 'dead', 'var(--state-dead)'],
  ['Cancelled', 'cancelled', 'var(--state-pending)'],
  ['Skipped', 'skipped', 'var(--state-skipped)'],
] as const;
const STEP_TEXTS = { '1m': 'minute', '5m': '5 minutes', '15m': '15 minutes' };
const formatWhole = (value: number): string => (Number.isInteger(value) ? value.toLocaleString('en') : '');

export function OutcomeChart({ series, step }: { series: Stats['series']; step: keyof typeof STEP_TEXTS }) {
  const times = useMemo(() => series.map((point) => Date.parse(point.at) / 1_000), [series]);
  const layers = useMemo(
    () =>
      OUTCOMES.map(([label, name, colour]) => ({
        label,
        colour,
        values: series.map((point) => point[name]),
      })),
    [series],
  );
  const total = series.reduce((sum, point) => sum + point.succeeded, 0);
  return (
    <Card title={`Jobs per ${STEP_TEXTS[step]}`}>
      <LazyChart
        kind="bars"
        times={times}
        series={layers}
        format={formatWhole}
        label={`Jobs by outcome; ${total.toLocaleString('en')} succeeded`}
        height={220}
      />
    </Card>
  );
}
