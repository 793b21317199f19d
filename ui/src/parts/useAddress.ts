import { useCallback, useMemo } from 'react';
import { useSearchParams } from 'wouter';

export type Filters<Name extends string> = Partial<Record<Name, string>>;

/** Filters that live in the address: what is shown can be bookmarked, shared and reopened. */
export function useAddress<Name extends string>(names: readonly Name[]): [Filters<Name>, (change: Filters<Name>) => void] {
  const [search, setSearch] = useSearchParams();
  const text = search.toString();
  const filters = useMemo(() => {
    const params = new URLSearchParams(text);
    return Object.fromEntries(names.flatMap((name) => (params.get(name) ? [[name, params.get(name)]] : []))) as Filters<Name>;
  }, [names, text]);
  const change = useCallback(
    (next: Filters<Name>) =>
      setSearch(
        (was) => {
          for (const [name, value] of Object.entries(next)) {
            if (value) was.set(name, String(value));
            else was.delete(name);
          }
          return was;
        },
        { replace: true },
      ),
    [setSearch],
  );
  return [filters, change];
}
