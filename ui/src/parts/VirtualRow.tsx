import { memo } from 'react';
import type { Column } from './column';
import classes from './VirtualTable.module.css';

interface VirtualRowProps<T> {
  row: T;
  id: string;
  columns: ReadonlyArray<Column<T>>;
  index: number;
  top: number;
  height: number;
  href: string;
  onOpen: (href: string) => void;
  name: string;
  /** null: rows cannot be selected. */
  selected: boolean | null;
  onToggle: ((id: string) => void) | undefined;
}

function Row<T>({
  row,
  id,
  columns,
  index,
  top,
  height,
  href,
  onOpen,
  name,
  selected,
  onToggle,
}: VirtualRowProps<T>) {
  return (
    // oxlint-disable-next-line jsx-a11y/click-events-have-key-events -- keyboard users open the row by the link in its first cell
    <div
      role="row"
      tabIndex={-1}
      aria-rowindex={index + 2}
      className={`${classes.row} ${classes.bodyRow}`}
      data-selected={selected || undefined}
      style={{ height, transform: `translateY(${top}px)` }}
      onClick={(event) => {
        if (!(event.target as HTMLElement).closest('a, button, input, [role="menu"]')) onOpen(href);
      }}
    >
      {selected !== null && (
        <div role="cell" className={classes.check}>
          <input
            type="checkbox"
            aria-label={`Select ${name}`}
            checked={selected}
            onChange={() => onToggle?.(id)}
          />
        </div>
      )}
      {columns.map((column) => (
        <div key={column.name} role="cell" className={classes.cell} data-wide={column.wide}>
          {column.cell(row)}
        </div>
      ))}
    </div>
  );
}

/** Memoized: scrolling renders only the rows that come into view. */
export const VirtualRow = memo(Row) as typeof Row;
