export interface ChartSeries {
  label: string;
  /** A CSS colour, such as `var(--state-dead)`. */
  colour: string;
  values: Array<number | null>;
}

export interface ChartProps {
  label: string;
  /** Seconds since the epoch. */
  times: number[];
  series: ChartSeries[];
  kind: 'bars' | 'lines';
  format: (value: number) => string;
  height?: number;
}
