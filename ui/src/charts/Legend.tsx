import { serverNow } from '../time/clock';
import { fullTime } from '../time/format';
import classes from './Chart.module.css';
import type { ChartProps } from './chartTypes';

interface LegendProps extends Pick<ChartProps, 'series' | 'format'> {
  index: number;
  time: number | undefined;
  zone: string;
}

export function Legend({ series, index, time, format, zone }: LegendProps) {
  return (
    <figcaption className={classes.legend}>
      {series.map((entry) => {
        const value = entry.values[index];
        return (
          <span key={entry.label} className={classes.entry}>
            <span className={classes.swatch} style={{ background: entry.colour }} />
            {entry.label} <b>{value == null ? '–' : format(value)}</b>
          </span>
        );
      })}
      {time !== undefined && (
        <span className={classes.time}>{fullTime(time * 1_000, zone, serverNow())}</span>
      )}
    </figcaption>
  );
}
