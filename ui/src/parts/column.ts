import type { ReactNode } from 'react';

/** A column of a VirtualTable. */
export interface Column<T> {
  name: string;
  /** A CSS grid track, such as `minmax(160px, 2fr)`. */
  width: string;
  /** The grid track on a narrow screen, if it differs. */
  narrow?: string;
  cell: (row: T) => ReactNode;
  /** Hidden on a narrow screen. */
  wide?: boolean;
}
