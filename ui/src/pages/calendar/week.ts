import { instantOf, localInput } from '../../time/format';

export const DAYS = 7;

export interface Week {
  from: string;
  to: string;
  /** Local dates, such as 2026-11-16. */
  days: string[];
}

/** Today and the next days, by the calendar of the time zone. */
export function weekFrom(now: number, zone: string): Week {
  const today = localInput(now, zone).slice(0, 10);
  const days = Array.from({ length: DAYS }, (_, index) => addDays(today, index));
  return { from: startOf(days[0]!, zone), to: startOf(addDays(today, DAYS), zone), days };
}

function addDays(date: string, days: number): string {
  const result = new Date(`${date}T00:00:00Z`);
  result.setUTCDate(result.getUTCDate() + days);
  return result.toISOString().slice(0, 10);
}

const startOf = (date: string, zone: string): string =>
  new Date(instantOf(`${date}T00:00:00`, zone) ?? 0).toISOString();
