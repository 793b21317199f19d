import uPlot from 'uplot';
import { clockTime, day } from '../time/format';
import type { ChartProps } from './chartTypes';
import { resolveColour } from './resolveColour';

const DAY = 86_400_000;

interface OptionsInput extends Pick<ChartProps, 'series' | 'kind' | 'format'> {
  zone: string;
  width: number;
  height: number;
  onPoint: (index: number | null) => void;
}

/** Stacks the layers. The first is the highest, so that drawing in order leaves every layer visible. */
export function stacked(values: Array<Array<number | null>>): number[][] {
  const sums: number[][] = [];
  for (const layer of values.toReversed()) {
    const below = sums[0];
    sums.unshift(layer.map((value, index) => (value ?? 0) + (below?.[index] ?? 0)));
  }
  return sums;
}

/** Values without a neighbour: no line connects them, so each is drawn as a dot. */
export function isolated(values: ReadonlyArray<number | null | undefined>): number[] {
  return values.flatMap((value, index) =>
    value != null && values[index - 1] == null && values[index + 1] == null ? [index] : [],
  );
}

/** Bars are centred on their times, so the axis extends half a step beyond the first and the last. */
function withHalfSteps(plot: uPlot, from: number, to: number): [number, number] {
  const times = plot.data[0];
  const half = times.length > 1 ? (times[1]! - times[0]!) / 2 : 30;
  return [from - half, to + half];
}

/** The time of a tick, or its day if the ticks are days apart. */
function tickText(at: number, zone: string, ticks: number[]): string {
  const step = ticks.length > 1 ? (ticks[1]! - ticks[0]!) * 1_000 : 0;
  return step >= DAY / 2 ? day(at, zone, at) : clockTime(at, zone, false);
}

export function optionsFor({
  series,
  kind,
  format,
  zone,
  width,
  height,
  onPoint,
}: OptionsInput): uPlot.Options {
  const soft = resolveColour('var(--text-soft)');
  const line = resolveColour('var(--line)');
  const axis = {
    stroke: soft,
    grid: { stroke: line, width: 1 },
    ticks: { show: false },
    font: '11px Inter Variable, system-ui, sans-serif',
  };
  const bars = uPlot.paths.bars?.({ size: [0.8, 40], radius: 0.15 });
  return {
    width,
    height,
    padding: [8, 20, 0, 0], // room for half a label at the right edge
    legend: { show: false },
    cursor: { y: false, points: { show: kind === 'lines' }, drag: { x: false, y: false } },
    scales: {
      ...(kind === 'bars' && { x: { range: withHalfSteps } }),
      y: { range: (_, __, high) => [0, Math.max(high * 1.1, 1)] },
    },
    axes: [
      {
        ...axis,
        size: 28,
        grid: { show: false },
        values: (_, ticks) => ticks.map((tick) => tickText(tick * 1_000, zone, ticks)),
      },
      { ...axis, size: kind === 'bars' ? 40 : 64, values: (_, ticks) => ticks.map(format) },
    ],
    series: [
      {},
      ...series.map((entry): uPlot.Series => {
        const colour = resolveColour(entry.colour);
        return kind === 'bars'
          ? {
              label: entry.label,
              fill: colour,
              stroke: colour,
              width: 0,
              points: { show: false },
              ...(bars && { paths: bars }),
            }
          : {
              label: entry.label,
              stroke: colour,
              width: 2,
              points: {
                show: false,
                size: 6,
                width: 0,
                fill: colour,
                filter: (plot, index) => isolated(Array.from(plot.data[index] ?? [])),
              },
            };
      }),
    ],
    hooks: { setCursor: [(plot) => onPoint(plot.cursor.idx ?? null)] },
  };
}
