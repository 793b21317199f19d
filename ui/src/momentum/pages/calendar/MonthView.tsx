import { memo } from 'react';
import { Link } from 'wouter';
import { Icon } from '../../../parts/Icon';
import { plural } from '../../../parts/plural';
import type { CalendarDay, PostState } from '../../api/types';
import { toneOf } from '../../parts/states';
import { addDays, datesFrom, longDate, startOfMonth, startOfWeek } from '../../when/dates';
import { useCalendarActions } from './calendarContext';
import { DropCell } from './DropCell';
import classes from './MonthView.module.css';
import { PostChip } from './PostChip';
import { PER_DAY } from './range';

interface MonthViewProps {
  /** Any day of the month. */
  month: string;
  today: string;
  days: Map<string, CalendarDay>;
}

const WEEKS = 6;
const WEEKDAYS = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'];

export function MonthView({ month, today, days }: MonthViewProps) {
  const first = startOfWeek(startOfMonth(month));
  const weeks = Array.from({ length: WEEKS }, (_, index) => addDays(first, index * 7)).filter(
    (week) => week.slice(0, 7) <= month.slice(0, 7),
  );
  return (
    <div className={classes.root}>
      <div className={classes.head} aria-hidden="true">
        {WEEKDAYS.map((weekday) => (
          <div key={weekday}>{weekday}</div>
        ))}
      </div>
      {weeks.map((week) => (
        <div key={week} className={classes.week}>
          {datesFrom(week, 7).map((date) => (
            <Day
              key={date}
              date={date}
              day={days.get(date)}
              dim={date.slice(0, 7) !== month.slice(0, 7)}
              today={today}
            />
          ))}
        </div>
      ))}
    </div>
  );
}

interface DayProps {
  date: string;
  day: CalendarDay | undefined;
  dim: boolean;
  today: string;
}

const Day = memo(function Day({ date, day, dim, today }: DayProps) {
  const { onOpenDay } = useCalendarActions();
  const count = day?.count ?? 0;
  const shown = day?.posts.slice(0, PER_DAY) ?? [];
  const label = `${longDate(date)}, ${plural(count, 'post')}`;
  return (
    <DropCell date={date} className={classes.day ?? ''} label={label} dim={dim} today={date === today}>
      <div className={classes.top}>
        <button type="button" className={classes.number} onClick={() => onOpenDay(date)} aria-label={label}>
          {Number(date.slice(8))}
        </button>
        {date >= today && (
          <Link
            href={`/new?date=${date}`}
            className={classes.add ?? ''}
            aria-label={`New post on ${longDate(date)}`}
          >
            <Icon name="plus" size={14} />
          </Link>
        )}
      </div>
      {shown.map((post) => (
        <PostChip key={post.id} post={post} />
      ))}
      {count > shown.length && (
        <button type="button" className={classes.more} onClick={() => onOpenDay(date)}>
          +{(count - shown.length).toLocaleString('en')} more
        </button>
      )}
      {count > 0 && <Dots states={day?.states ?? {}} count={count} />}
    </DropCell>
  );
});

/** The day on a narrow screen. */
function Dots({ states, count }: { states: Record<string, number>; count: number }) {
  const tones = new Set(Object.keys(states).map((state) => toneOf(state as PostState)));
  return (
    <span className={classes.dots} aria-hidden="true">
      {[...tones].map((tone) => (
        <i key={tone} data-tone={tone} />
      ))}
      {count}
    </span>
  );
}
