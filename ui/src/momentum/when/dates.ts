const DAY = 86_400_000;

const utc = (date: string): number => Date.parse(`${date}T00:00Z`);

/** Calendar days later, such as "2026-11-17". No time zone is involved. */
export const addDays = (date: string, days: number): string =>
  new Date(utc(date) + days * DAY).toISOString().slice(0, 10);

/** 0 is Monday. */
export const weekdayOf = (date: string): number => (new Date(utc(date)).getUTCDay() + 6) % 7;

export const startOfWeek = (date: string): string => addDays(date, -weekdayOf(date));

export const startOfMonth = (date: string): string => `${date.slice(0, 7)}-01`;

/** The first of a month some months later. */
export function addMonths(date: string, months: number): string {
  const [year = 0, month = 1] = date.split('-').map(Number);
  return new Date(Date.UTC(year, month - 1 + months, 1)).toISOString().slice(0, 10);
}

export function datesFrom(first: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => addDays(first, index));
}

export function formatDate(date: string, options: Intl.DateTimeFormatOptions): string {
  return new Intl.DateTimeFormat('en-GB', { ...options, timeZone: 'UTC' }).format(utc(date));
}

/** "Tuesday 17 November 2026". */
export const longDate = (date: string): string =>
  formatDate(date, { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' }).replace(',', '');
