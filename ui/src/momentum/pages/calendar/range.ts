import {
  addDays,
  addMonths,
  datesFrom,
  formatDate,
  longDate,
  startOfMonth,
  startOfWeek,
} from '../../when/dates';

export type View = 'month' | 'week' | 'day' | 'list';

export const VIEWS: ReadonlyArray<{ value: View; label: string }> = [
  { value: 'month', label: 'Month' },
  { value: 'week', label: 'Week' },
  { value: 'day', label: 'Day' },
  { value: 'list', label: 'List' },
];

/** Chips that fit into a day of a month. */
export const PER_DAY = 4;
/** Chips that an hour shows; the rest is in the list. */
export const PER_HOUR = { week: 3, day: 12 };

interface Range {
  from: string;
  to: string;
  title: string;
  previous: string;
  next: string;
  dates: string[];
}

const MONTH_DAYS = 42; // six weeks

/** The days that a view shows, and the dates of the views before and after it. */
export function rangeOf(view: View, date: string): Range {
  if (view === 'week') {
    const from = startOfWeek(date);
    const dates = datesFrom(from, 7);
    return {
      from,
      to: addDays(from, 6),
      title: weekTitle(from),
      previous: addDays(from, -7),
      next: addDays(from, 7),
      dates,
    };
  }
  if (view === 'day') {
    const [previous, next] = [addDays(date, -1), addDays(date, 1)];
    return { from: date, to: date, title: longDate(date), previous, next, dates: [date] };
  }
  const month = startOfMonth(date);
  const from = startOfWeek(month);
  return {
    from,
    to: addDays(from, MONTH_DAYS - 1),
    title: view === 'list' ? 'All posts' : formatDate(month, { month: 'long', year: 'numeric' }),
    previous: addMonths(month, -1),
    next: addMonths(month, 1),
    dates: [],
  };
}

function weekTitle(from: string): string {
  const to = addDays(from, 6);
  const start = formatDate(from, {
    day: 'numeric',
    ...(from.slice(0, 7) !== to.slice(0, 7) && { month: 'short' }),
  });
  return `${start} – ${formatDate(to, { day: 'numeric', month: 'long', year: 'numeric' })}`;
}
