import { Paper, Text, Tooltip } from '@mantine/core';
import { useMemo } from 'react';
import type { Calendar } from '../../api/types';
import { plural } from '../../parts/plural';
import { useArrowKeys } from '../../parts/useArrowKeys';
import { serverNow } from '../../time/clock';
import { localInput, zoneName } from '../../time/format';
import classes from './HeatMap.module.css';

interface HeatMapProps {
  buckets: Calendar['buckets'];
  days: string[];
  zone: string;
  selected: string | null;
  onSelect: (at: string) => void;
}

interface Cell {
  at: string;
  count: number;
}

const HOURS = Array.from({ length: 24 }, (_, hour) => String(hour).padStart(2, '0'));
const HOUR = 3_600_000;
const MIN_HEAT = 12;
const MIN_SPREAD = 0.1; // below this relative difference, all hours look the same
const EVEN_HEAT = 0.35;

/** One row per day, one cell per hour: the darker, the more fires. Load peaks stand out. */
export function HeatMap({ buckets, days, zone, selected, onSelect }: HeatMapProps) {
  const cells = useMemo(() => cellsOf(buckets, zone), [buckets, zone]);
  const now = serverNow();
  // Without the current hour: a part of it is over.
  const future = [...cells.values()].filter((cell) => cell.count > 0 && Date.parse(cell.at) >= now);
  const max = Math.max(1, ...future.map((cell) => cell.count));
  const min = Math.min(max, ...future.map((cell) => cell.count));
  const { tabIndexOf, ...keys } = useArrowKeys(
    HOURS.length,
    days.flatMap((day) => HOURS.map((hour) => Boolean(cells.get(`${day}T${hour}`)?.count))),
  );
  return (
    <Paper withBorder p="lg" className={classes.scroll}>
      <div className={classes.root} role="toolbar" {...keys} aria-label={`Fires by day and hour, ${zone}`}>
        <span className={classes.corner}>{zoneName(now, zone)}</span>
        {HOURS.map((hour) => (
          <span key={hour} className={classes.hour}>
            {hour}
          </span>
        ))}
        {days.map((day, row) => (
          <div key={day} className={classes.row}>
            <span className={classes.day}>{dayName(day)}</span>
            {HOURS.map((hour, column) => {
              const cell = cells.get(`${day}T${hour}`);
              const past = cell === undefined || Date.parse(cell.at) + HOUR <= now;
              const text = `${dayName(day)} ${hour}:00: ${plural(cell?.count ?? 0, 'fire')}`;
              return (
                <Tooltip key={hour} label={text}>
                  <button
                    type="button"
                    className={classes.cell}
                    style={
                      {
                        '--heat': `${cell?.count ? MIN_HEAT + (100 - MIN_HEAT) * heat(cell.count, min, max) : 0}%`,
                      } as React.CSSProperties
                    }
                    data-past={past || undefined}
                    aria-pressed={cell !== undefined && cell.at === selected}
                    aria-label={text}
                    disabled={!cell?.count}
                    tabIndex={tabIndexOf(row * HOURS.length + column)}
                    onClick={() => cell && onSelect(cell.at)}
                  />
                </Tooltip>
              );
            })}
          </div>
        ))}
      </div>
      <Text size="xs" c="dimmed" mt="sm">
        The busiest hour has {plural(max, 'fire')}. Select an hour to see its minutes.
      </Text>
    </Paper>
  );
}

/** The position between the quietest and the busiest hour. If all are similar, none stands out. */
function heat(count: number, min: number, max: number): number {
  return (max - min) / max < MIN_SPREAD ? EVEN_HEAT : Math.sqrt(Math.max(0, count - min) / (max - min));
}

function dayName(date: string): string {
  return new Intl.DateTimeFormat('en-GB', {
    weekday: 'short',
    day: 'numeric',
    month: 'short',
    timeZone: 'UTC',
  })
    .format(Date.parse(`${date}T00:00:00Z`))
    .replace(',', '');
}

/** Cells by local day and hour. An hour that occurs twice when clocks go back is one cell. */
function cellsOf(buckets: Calendar['buckets'], zone: string): Map<string, Cell> {
  const cells = new Map<string, Cell>();
  for (const { at, count } of buckets) {
    const key = localInput(Date.parse(at), zone).slice(0, 13);
    const cell = cells.get(key);
    cells.set(key, { at: cell?.at ?? at, count: count + (cell?.count ?? 0) });
  }
  return cells;
}
