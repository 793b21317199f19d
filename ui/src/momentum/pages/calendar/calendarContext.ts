import { createContext, useContext } from 'react';
import type { Account, SlimPost } from '../../api/types';

interface CalendarActions {
  zone: string;
  accounts: Map<string, Account>;
  onDrag: (post: SlimPost | null) => void;
  /** Drops the dragged post on a date, and on an hour if one is given. */
  onDrop: (date: string, hour?: number) => void;
  onMove: (post: SlimPost) => void;
  onOpenDay: (date: string) => void;
  /** The list of the posts of one hour. */
  onOpenHour: (date: string, hour: number) => void;
}

export const CalendarContext = createContext<CalendarActions | null>(null);

export function useCalendarActions(): CalendarActions {
  const actions = useContext(CalendarContext);
  if (actions === null) throw new Error('useCalendarActions needs a CalendarPage');
  return actions;
}
