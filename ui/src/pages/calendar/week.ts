import { instantOf, localInput } from '../../time/format';

export const DAYS = 7;

export interface Week {
  from: string;
  to: string;
  /** Local dates, such as 2026-11-16. */
  days: string[];
}

/** Today and the days after it, as the calendar in the zone has them. */
export function weekFrom(now: number, zone: string): Week {
  const today = localInput(now, zone).slice(0, 10);
  const days = Array.from({ length: DAYS }, (_, index) => nextDay(today, index));
  return { from: startOf(days[0]!, zone), to: startOf(nextDay(today, DAYS), zone), days };
}

function nextDay(date: string, days: number): string {
  const moved = new Date(`${date}T00:00:00Z`);
  moved.setUTCDate(moved.getUTCDate() + days);
  return moved.toISOString().slice(0, 10);
}

const startOf = (date: string, zone: string): string => new Date(instantOf(`${date}T00:00:00`, zone) ?? 0).toISOString();
