import { useMemo, useState } from 'react';

export interface Selection {
  /** Every row that matches the filter is selected, including rows that are not loaded. */
  all: boolean;
  size: number;
  ids: string[];
  has: (id: string) => boolean;
  toggle: (id: string) => void;
  toggleAll: () => void;
  clear: () => void;
}

interface SelectionState {
  filter: string;
  all: boolean;
  ids: ReadonlySet<string>;
}

/**
 * Single selected rows, or all matches. A new filter clears the selection, so that no action applies to rows
 * that are no longer visible.
 */
export function useSelection(filters: unknown): Selection {
  const filter = JSON.stringify(filters);
  const [state, setState] = useState<SelectionState | null>(null);
  return useMemo(() => {
    const { all, ids } = state?.filter === filter ? state : { all: false, ids: new Set<string>() };
    const select = (next: ReadonlySet<string>, every = false) => setState({ filter, all: every, ids: next });
    return {
      all,
      size: ids.size,
      ids: [...ids],
      has: (id) => all || ids.has(id),
      toggle: (id) =>
        select(ids.has(id) ? new Set([...ids].filter((other) => other !== id)) : new Set(ids).add(id)),
      toggleAll: () => select(new Set(), !all),
      clear: () => setState(null),
    };
  }, [state, filter]);
}
