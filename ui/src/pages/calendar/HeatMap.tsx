import { Paper, Text, Tooltip } from '@mantine/core';
import { useMemo } from 'react';
import type { Calendar } from '../../api/types';
import { useArrowKeys } from '../../parts/useArrowKeys';
import { serverNow } from '../../time/clock';
import { localInput, zoneName } from '../../time/format';
import classes from './HeatMap.module.css';

interface HeatMapProps {
  buckets: Calendar['buckets'];
  days: string[];
  zone: string;
  chosen: string | null;
  onChoose: (at: string) => void;
}

interface Cell {
  at: string;
  count: number;
}

const HOURS = Array.from({ length: 24 }, (_, hour) => String(hour).padStart(2, '0'));
const HOUR = 3_600_000;
const FAINTEST = 12;
const EVEN = 0.1;
const EVEN_HEAT = 0.35;

/** Days by hours; the darker, the more fires. Herds stand out. */
export function HeatMap({ buckets, days, zone, chosen, onChoose }: HeatMapProps) {
  const cells = useMemo(() => cellsOf(buckets, zone), [buckets, zone]);
  const now = serverNow();
  const whole = [...cells.values()].filter((cell) => cell.count > 0 && Date.parse(cell.at) >= now); // of this hour, a part is over
  const most = Math.max(1, ...whole.map((cell) => cell.count));
  const least = Math.min(most, ...whole.map((cell) => cell.count));
  const { tabIndexOf, ...keys } = useArrowKeys(HOURS.length, days.flatMap((day) => HOURS.map((hour) => Boolean(cells.get(`${day}T${hour}`)?.count))));
  return (
    <Paper withBorder p="lg" className={classes.scroll}>
      <div className={classes.root} role="toolbar" {...keys} aria-label={`Fires by day and hour, ${zone}`}>
        <span className={classes.corner}>{zoneName(now, zone)}</span>
        {HOURS.map((hour) => (
          <span key={hour} className={classes.hour}>
            {hour}
          </span>
        ))}
        {days.map((day, line) => (
          <div key={day} className={classes.line}>
            <span className={classes.day}>{dayName(day)}</span>
            {HOURS.map((hour, column) => {
              const cell = cells.get(`${day}T${hour}`);
              const past = cell === undefined || Date.parse(cell.at) + HOUR <= now;
              const words = `${dayName(day)} ${hour}:00: ${cell?.count.toLocaleString('en') ?? 'no'} fires`;
              return (
                <Tooltip key={hour} label={words}>
                  <button
                    type="button"
                    className={classes.cell}
                    style={{ '--heat': `${cell?.count ? FAINTEST + (100 - FAINTEST) * heat(cell.count, least, most) : 0}%` } as React.CSSProperties}
                    data-past={past || undefined}
                    aria-pressed={cell !== undefined && cell.at === chosen}
                    aria-label={words}
                    disabled={!cell?.count}
                    tabIndex={tabIndexOf(line * HOURS.length + column)}
                    onClick={() => cell && onChoose(cell.at)}
                  />
                </Tooltip>
              );
            })}
          </div>
        ))}
      </div>
      <Text size="xs" c="dimmed" mt="sm">
        The busiest hour has {most.toLocaleString('en')} fires. Choose an hour to see its minutes.
      </Text>
    </Paper>
  );
}

/** Between the quietest hour and the busiest; where all are nearly alike, none shall look like a herd. */
function heat(count: number, least: number, most: number): number {
  return (most - least) / most < EVEN ? EVEN_HEAT : Math.sqrt(Math.max(0, count - least) / (most - least));
}

function dayName(date: string): string {
  return new Intl.DateTimeFormat('en-GB', { weekday: 'short', day: 'numeric', month: 'short', timeZone: 'UTC' }).format(Date.parse(`${date}T00:00:00Z`)).replace(',', '');
}

/** By local day and hour; an hour that comes twice when clocks go back is one cell. */
function cellsOf(buckets: Calendar['buckets'], zone: string): Map<string, Cell> {
  const cells = new Map<string, Cell>();
  for (const { at, count } of buckets) {
    const place = localInput(Date.parse(at), zone).slice(0, 13);
    const cell = cells.get(place);
    cells.set(place, { at: cell?.at ?? at, count: count + (cell?.count ?? 0) });
  }
  return cells;
}
