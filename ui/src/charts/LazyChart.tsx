import { Skeleton } from '@mantine/core';
import { lazy, Suspense } from 'react';
import type { ChartProps } from './chartTypes';

const Chart = lazy(() => import('./Chart'));

/** The library that draws comes when the first chart does. */
export function LazyChart(props: ChartProps) {
  return (
    <Suspense fallback={<Skeleton height={(props.height ?? 200) + 26} />}>
      <Chart {...props} />
    </Suspense>
  );
}
