import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { call } from '../../api/call';
import type { Schedule } from '../../api/types';

/** Schedules whose name contains the text; undefined while they are loaded. A pattern is not searched. */
export function useSchedulesLike(name: string): Schedule[] | undefined {
  const [text] = useDebouncedValue(name.trim().split('*', 1)[0] ?? '', 200);
  const { data } = useQuery({
    queryKey: ['schedules', 'like', text],
    queryFn: ({ signal }) => call('GET /schedules', { query: { limit: 20, ...(text && { text }) }, signal }),
  });
  return data?.items as Schedule[] | undefined;
}
