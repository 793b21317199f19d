import { keepPreviousData, useInfiniteQuery, type QueryKey } from '@tanstack/react-query';
import { useMemo } from 'react';

interface Page<T> {
  items: T[];
  next_cursor: string | null;
}

interface PagesOptions<T> {
  key: QueryKey;
  fetch: (cursor: string | undefined, signal: AbortSignal) => Promise<Page<T>>;
  refresh: number | false;
}

/** All loaded pages of an API list, as one list. */
export function usePages<T>({ key, fetch, refresh }: PagesOptions<T>) {
  const query = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam, signal }) => fetch(pageParam, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next_cursor ?? undefined,
    placeholderData: keepPreviousData,
    refetchInterval: refresh,
    structuralSharing: false, // comparing ten thousand rows costs more than rendering the forty visible ones
  });
  const rows = useMemo(() => query.data?.pages.flatMap((page) => page.items) ?? [], [query.data]);
  return { ...query, rows };
}
