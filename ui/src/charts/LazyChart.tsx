import { Skeleton } from '@mantine/core';
import { lazy, Suspense } from 'react';
import type { ChartProps } from './chartTypes';

const Chart = lazy(() => import('./Chart'));

/** Loads the chart library when the first chart is shown. */
export function LazyChart(props: ChartProps) {
  return (
    <Suspense fallback={<Skeleton height={(props.height ?? 200) + 26} />}>
      <Chart {...props} />
    </Suspense>
  );
}
