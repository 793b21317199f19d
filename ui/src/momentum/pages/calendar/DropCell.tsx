import { useState, type ReactNode } from 'react';
import { useCalendarActions } from './calendarContext';

interface DropCellProps {
  date: string;
  hour?: number;
  className: string;
  label: string;
  dim?: boolean;
  today?: boolean;
  children: ReactNode;
}

/** A day or an hour on which a post can be dropped. */
export function DropCell({ date, hour, className, label, dim, today, children }: DropCellProps) {
  const { onDrop } = useCalendarActions();
  const [over, setOver] = useState(false);
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- a dialog moves posts by keyboard
    <div
      role="group"
      aria-label={label}
      className={className}
      data-date={date}
      data-hour={hour}
      data-over={over || undefined}
      data-dim={dim || undefined}
      data-today={today || undefined}
      onDragOver={(event) => {
        if (event.dataTransfer.types.includes('Files')) return;
        event.preventDefault();
        event.dataTransfer.dropEffect = 'move';
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        onDrop(date, hour);
      }}
    >
      {children}
    </div>
  );
}
