import { Loader } from '@mantine/core';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useRef, type ReactNode } from 'react';
import type { Selection } from './useSelection';
import { VirtualRow } from './VirtualRow';
import classes from './VirtualTable.module.css';

export interface Column<T> {
  name: string;
  /** A CSS grid track, such as `minmax(160px, 2fr)`. */
  width: string;
  /** The track where the screen is narrow, if another. */
  narrow?: string;
  cell: (row: T) => ReactNode;
  /** Left out where the screen is narrow. */
  wide?: boolean;
}

interface VirtualTableProps<T> {
  label: string;
  rows: T[];
  columns: ReadonlyArray<Column<T>>;
  rowId: (row: T) => string;
  rowName: (row: T) => string;
  href: (row: T) => string;
  selection?: Selection;
  onEnd: () => void;
  more: boolean;
}

const ROW = 56;
const AHEAD = 6;
const CHECKBOX = '40px';

/** A table of any length: only the rows in view exist. Rows open by click and by the link in their first column. */
export function VirtualTable<T>(props: VirtualTableProps<T>) {
  const { label, rows, columns, rowId, rowName, href, selection, onEnd, more } = props;
  const box = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => box.current, estimateSize: () => ROW, overscan: AHEAD });
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? -1;

  useEffect(() => {
    if (more && last >= rows.length - AHEAD * 4) onEnd();
  }, [last, rows.length, more, onEnd]);

  const tracks = (shown: string[]) => [...(selection ? [CHECKBOX] : []), ...shown].join(' ');
  const narrow = columns.filter((one) => !one.wide).map((one) => one.narrow ?? one.width.replace(/minmax\(\d+px/, 'minmax(0'));
  const style = { '--wide-tracks': tracks(columns.map((one) => one.width)), '--narrow-tracks': tracks(narrow) } as React.CSSProperties;
  return (
    <div className={classes.root} style={style}>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by keyboard */}
      <div className={classes.box} ref={box} role="table" aria-label={label} aria-rowcount={more ? -1 : rows.length + 1} tabIndex={0}>
        <div className={classes.head} role="rowgroup">
          <div className={classes.row} role="row">
            {selection && (
              <div role="columnheader" className={classes.check}>
                <input
                  type="checkbox"
                  aria-label="Select all that match"
                  checked={selection.all}
                  ref={(input) => {
                    if (input) input.indeterminate = !selection.all && selection.size > 0;
                  }}
                  onChange={selection.toggleAll}
                />
              </div>
            )}
            {columns.map((column) => (
              <div key={column.name} role="columnheader" className={classes.headCell} data-wide={column.wide}>
                {column.name}
              </div>
            ))}
          </div>
        </div>
        <div style={{ height: virtual.getTotalSize(), position: 'relative' }} role="rowgroup">
          {items.map((item) => {
            const row = rows[item.index] as T;
            const id = rowId(row);
            return (
              <VirtualRow
                key={id}
                row={row}
                columns={columns}
                index={item.index}
                top={item.start}
                height={ROW}
                href={href(row)}
                name={rowName(row)}
                chosen={selection ? selection.has(id) : null}
                onToggle={selection?.toggle}
                id={id}
              />
            );
          })}
        </div>
        {more && (
          <div className={classes.more}>
            <Loader size="xs" /> Loading more
          </div>
        )}
      </div>
    </div>
  );
}
