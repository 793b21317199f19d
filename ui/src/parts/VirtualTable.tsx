import { Loader } from '@mantine/core';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useRef } from 'react';
import { useLocation } from 'wouter';
import type { Column } from './column';
import type { Selection } from './useSelection';
import { VirtualRow } from './VirtualRow';
import classes from './VirtualTable.module.css';

interface VirtualTableProps<T> {
  label: string;
  rows: T[];
  columns: ReadonlyArray<Column<T>>;
  rowId: (row: T) => string;
  rowName: (row: T) => string;
  href: (row: T) => string;
  selection?: Selection;
  /** False if a filter is active that bulk actions do not support. */
  canSelectAll?: boolean;
  onEnd: () => void;
  more: boolean;
}

const ROW_HEIGHT = 56;
const OVERSCAN = 4;
const PRELOADED = 24; // rows before the end at which the next page is fetched
const CHECKBOX_WIDTH = '40px';

/**
 * A table of any length that renders only the rows in view. A row opens by click or by the link in its first
 * cell.
 */
export function VirtualTable<T>(props: VirtualTableProps<T>) {
  const { label, rows, columns, rowId, rowName, href, selection, canSelectAll = true, onEnd, more } = props;
  const box = useRef<HTMLDivElement>(null);
  const [, navigate] = useLocation();
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: OVERSCAN,
    // React renders new rows in a task of its own: rendering inside of the frame blocks the page for the sum of both.
    useFlushSync: false,
  });
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? -1;

  useEffect(() => {
    if (more && last >= rows.length - PRELOADED) onEnd();
  }, [last, rows.length, more, onEnd]);

  const tracks = (widths: string[]) => [...(selection ? [CHECKBOX_WIDTH] : []), ...widths].join(' ');
  const narrow = columns
    .filter((column) => !column.wide)
    .map((column) => column.narrow ?? column.width.replace(/minmax\(\d+px/, 'minmax(0'));
  const style = {
    '--wide-tracks': tracks(columns.map((column) => column.width)),
    '--narrow-tracks': tracks(narrow),
  } as React.CSSProperties;
  return (
    <div className={classes.root} style={style}>
      <div
        className={classes.box}
        ref={box}
        role="table"
        aria-label={label}
        aria-rowcount={more ? -1 : rows.length + 1}
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a scrolling box must be reachable by keyboard
        tabIndex={0}
      >
        <div className={classes.head} role="rowgroup">
          <div className={classes.row} role="row">
            {selection && (
              <div role="columnheader" className={classes.check}>
                <input
                  type="checkbox"
                  aria-label="Select all matches"
                  checked={selection.all}
                  disabled={!canSelectAll}
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
                height={ROW_HEIGHT}
                href={href(row)}
                onOpen={navigate}
                name={rowName(row)}
                selected={selection ? selection.has(id) : null}
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
