import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { call } from '../../api/call';
import { useRefresh } from '../../live/liveContext';
import { useHasScope } from '../../session/sessionContext';
import { bulkFilterOf, type ScheduleFilters } from './filters';

/**
 * The number of matching schedules. It comes from a dry run of a bulk action, so it needs the scope manage.
 */
export function useScheduleCount(filters: ScheduleFilters): string | null {
  const canManage = useHasScope('manage');
  const { data } = useQuery({
    queryKey: ['schedules', 'count', filters],
    queryFn: ({ signal }) =>
      call('POST /schedules/bulk', {
        body: { action: 'trigger', filter: bulkFilterOf(filters), dry_run: true },
        signal,
      }),
    enabled: canManage,
    refetchInterval: useRefresh(30_000),
    placeholderData: keepPreviousData,
  });
  return data ? `${data.at_least ? 'at least ' : ''}${data.matched.toLocaleString('en')}` : null;
}
