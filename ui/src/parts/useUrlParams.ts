import { useCallback, useMemo } from 'react';
import { useSearchParams } from 'wouter';

export type Filters<Name extends string> = Partial<Record<Name, string>>;

/** Filters stored in the URL, so that a view can be bookmarked and shared. */
export function useUrlParams<Name extends string>(
  names: readonly Name[],
): [Filters<Name>, (change: Filters<Name>) => void] {
  const [search, setSearch] = useSearchParams();
  const text = search.toString();
  const filters = useMemo(() => {
    const params = new URLSearchParams(text);
    return Object.fromEntries(
      names.flatMap((name) => (params.get(name) ? [[name, params.get(name)]] : [])),
    ) as Filters<Name>;
  }, [names, text]);
  const change = useCallback(
    (next: Filters<Name>) =>
      setSearch(
        (current) => {
          for (const [name, value] of Object.entries(next)) {
            if (value) current.set(name, String(value));
            else current.delete(name);
          }
          return current;
        },
        { replace: true },
      ),
    [setSearch],
  );
  return [filters, change];
}
