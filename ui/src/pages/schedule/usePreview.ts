import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { call } from '../../api/call';
import type { NewSchedule } from '../../api/types';

const DEBOUNCE = 200;
const MAX_FIRES = 10;

/** The schedule in words and its next fires, fetched while typing. */
export function usePreview(body: NewSchedule, enabled: boolean) {
  const request = {
    when: body.when,
    count: MAX_FIRES,
    ...(body.start_at && { start_at: body.start_at }),
    ...(body.end_at && { end_at: body.end_at }),
  };
  const [debounced] = useDebouncedValue(JSON.stringify(request), DEBOUNCE);
  return useQuery({
    queryKey: ['preview', debounced],
    queryFn: ({ signal }) => call('POST /preview', { body: JSON.parse(debounced) as typeof request, signal }),
    placeholderData: keepPreviousData,
    enabled,
    retry: false,
    staleTime: 10_000,
  });
}
