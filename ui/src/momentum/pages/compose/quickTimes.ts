import { localInput } from '../../../time/format';
import { addDays, weekdayOf } from '../../when/dates';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** The next date with this weekday on which the time is still to come. */
export function nextWeekday(now: number, zone: string, weekday: number, time: string): string {
  const [today = '', clock = ''] = localInput(now, zone).split('T');
  const days = (weekday - weekdayOf(today) + 7) % 7;
  return addDays(today, days === 0 && time <= clock ? 7 : days);
}

export function quickTimes(now: number, zone: string): Array<{ label: string; date: string; time: string }> {
  const [today = ''] = localInput(now, zone).split('T');
  const at = (label: string, instant: number) => {
    const [date = '', time = ''] = localInput(instant, zone).split('T');
    return { label, date, time };
  };
  return [
    at('In a minute', now + MINUTE), // to the second: who tries it out waits no longer
    at('In an hour', Math.ceil((now + HOUR) / MINUTE) * MINUTE),
    { label: 'Tomorrow 09:00', date: addDays(today, 1), time: '09:00' },
    { label: 'Monday 09:00', date: nextWeekday(now, zone, 0, '09:00'), time: '09:00' },
  ];
}
