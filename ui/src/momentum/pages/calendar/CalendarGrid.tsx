import { memo } from 'react';
import type { CalendarDay } from '../../api/types';
import { HourView } from './HourView';
import { MonthView } from './MonthView';
import { PER_HOUR, rangeOf, type View } from './range';

export interface Grid {
  view: View;
  date: string;
  days: Map<string, CalendarDay>;
}

/**
 * The posts of a month, a week or a day. Memoized, because it has hundreds of elements: the page defers it, so
 * that React renders it in short steps while the page still answers.
 */
export const CalendarGrid = memo(function CalendarGrid({ grid, today }: { grid: Grid; today: string }) {
  const { view, date, days } = grid;
  if (view === 'month') return <MonthView month={date} today={today} days={days} />;
  const range = rangeOf(view, date);
  const perHour = view === 'week' ? PER_HOUR.week : PER_HOUR.day;
  return <HourView key={range.from} dates={range.dates} today={today} days={days} perHour={perHour} />;
});
