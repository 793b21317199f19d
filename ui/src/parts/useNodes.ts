import { useQuery } from '@tanstack/react-query';
import { call } from '../api/call';
import { useRefresh } from '../live/liveContext';

/** The nodes, and the name of a node by its number. */
export function useNodes() {
  const query = useQuery({
    queryKey: ['nodes'],
    queryFn: ({ signal }) => call('GET /nodes', { signal }),
    refetchInterval: useRefresh(5_000),
  });
  const nodes = query.data?.items;
  const nameOf = (id: number | null): string =>
    id === null ? 'none' : (nodes?.find((node) => node.id === id)?.name ?? `node ${id}`);
  return { ...query, nodes, nameOf };
}
