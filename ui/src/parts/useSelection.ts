import { useMemo, useState } from 'react';

export interface Selection {
  /** Everything that matches the filter, also what is not loaded. */
  all: boolean;
  size: number;
  ids: string[];
  has: (id: string) => boolean;
  toggle: (id: string) => void;
  toggleAll: () => void;
  clear: () => void;
}

interface Chosen {
  filter: string;
  all: boolean;
  ids: ReadonlySet<string>;
}

/** Rows chosen one by one, or all that match. Another filter begins anew: nobody acts on rows they no longer see. */
export function useSelection(filters: unknown): Selection {
  const filter = JSON.stringify(filters);
  const [last, setLast] = useState<Chosen | null>(null);
  return useMemo(() => {
    const { all, ids } = last?.filter === filter ? last : { all: false, ids: new Set<string>() };
    const choose = (next: ReadonlySet<string>, every = false) => setLast({ filter, all: every, ids: next });
    return {
      all,
      size: ids.size,
      ids: [...ids],
      has: (id) => all || ids.has(id),
      toggle: (id) => choose(ids.has(id) ? new Set([...ids].filter((one) => one !== id)) : new Set(ids).add(id)),
      toggleAll: () => choose(new Set(), !all),
      clear: () => setLast(null),
    };
  }, [last, filter]);
}
