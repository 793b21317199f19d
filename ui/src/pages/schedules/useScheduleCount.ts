import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { call } from '../../api/call';
import { useRefresh } from '../../live/liveContext';
import { useMay } from '../../session/sessionContext';
import { bulkFilterOf, type ScheduleFilters } from './filters';

/** How many there are. Asked as a dry run, which only those may who could act on them. */
export function useScheduleCount(filters: ScheduleFilters): string | null {
  const may = useMay('manage');
  const { data } = useQuery({
    queryKey: ['schedules', 'count', filters],
    queryFn: ({ signal }) => call('POST /schedules/bulk', { body: { action: 'trigger', filter: bulkFilterOf(filters), dry_run: true }, signal }),
    enabled: may,
    refetchInterval: useRefresh(30_000),
    placeholderData: keepPreviousData,
  });
  return data ? `${data.at_least ? 'at least ' : ''}${data.matched.toLocaleString('en')}` : null;
}
