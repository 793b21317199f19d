import { useEffect, useRef } from 'react';
import { localInput } from '../../../time/format';
import { plural } from '../../../parts/plural';
import type { CalendarDay, SlimPost } from '../../api/types';
import { formatDate, longDate } from '../../when/dates';
import { useCalendarActions } from './calendarContext';
import { DropCell } from './DropCell';
import classes from './HourView.module.css';
import month from './MonthView.module.css';
import { PostChip } from './PostChip';

interface HourViewProps {
  dates: string[];
  today: string;
  days: Map<string, CalendarDay>;
  /** Chips that an hour shows; the rest is in the list. */
  perHour: number;
}

const HOURS = Array.from({ length: 24 }, (_, hour) => hour);
const FIRST_VISIBLE = 7;

/** A week or a day by the hour. */
export function HourView({ dates, today, days, perHour }: HourViewProps) {
  const { zone, onOpenDay, onOpenHour } = useCalendarActions();
  const box = useRef<HTMLDivElement>(null);
  const rows = useRef(new Map<number, HTMLDivElement>());
  useEffect(() => {
    const row = rows.current.get(FIRST_VISIBLE);
    if (box.current && row) box.current.scrollTop = row.offsetTop - 60;
  }, []);
  const byHour = new Map(dates.map((date) => [date, groupByHour(days.get(date)?.posts ?? [], zone)]));
  return (
    <div
      className={classes.root}
      ref={box}
      data-days={dates.length}
      style={{ '--columns': dates.length } as React.CSSProperties}
      role="region"
      aria-label="Hours"
      // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a scrolling box must be reachable by keyboard
      tabIndex={0}
    >
      <div className={classes.head}>
        <span />
        {dates.map((date) => (
          <button
            key={date}
            type="button"
            className={classes.date}
            data-today={date === today || undefined}
            onClick={() => onOpenDay(date)}
            aria-label={`${shortDate(date)}, ${plural(days.get(date)?.count ?? 0, 'post')}`}
          >
            {shortDate(date)}
          </button>
        ))}
      </div>
      {HOURS.map((hour) => (
        <div
          key={hour}
          className={classes.row}
          ref={(row) => {
            if (row) rows.current.set(hour, row);
          }}
        >
          <span className={classes.hour}>{String(hour).padStart(2, '0')}:00</span>
          {dates.map((date) => (
            <DropCell
              key={date}
              date={date}
              hour={hour}
              className={classes.cell ?? ''}
              label={`${longDate(date)}, ${hour}:00`}
              today={date === today}
            >
              <Posts
                posts={byHour.get(date)?.get(hour) ?? []}
                max={perHour}
                count={days.get(date)?.hours[hour] ?? 0}
                onMore={() => onOpenHour(date, hour)}
              />
            </DropCell>
          ))}
        </div>
      ))}
    </div>
  );
}

interface PostsProps {
  posts: SlimPost[];
  max: number;
  /** All posts of the hour, also those that were not loaded. */
  count: number;
  onMore: () => void;
}

function Posts({ posts, max, count, onMore }: PostsProps) {
  const shown = posts.slice(0, max);
  return (
    <>
      {shown.map((post) => (
        <PostChip key={post.id} post={post} />
      ))}
      {count > shown.length && (
        <button type="button" className={month.more} onClick={onMore}>
          +{(count - shown.length).toLocaleString('en')} more
        </button>
      )}
    </>
  );
}

const shortDate = (date: string): string =>
  formatDate(date, { weekday: 'short', day: 'numeric', month: 'short' }).replace(',', '');

function groupByHour(posts: SlimPost[], zone: string): Map<number, SlimPost[]> {
  return Map.groupBy(posts, (post) => Number(localInput(Date.parse(post.scheduled_at), zone).slice(11, 13)));
}
