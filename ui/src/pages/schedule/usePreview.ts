import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { call } from '../../api/call';
import type { NewSchedule } from '../../api/types';

const PAUSE = 200;
const SHOWN = 10;

/** What the expression means and when it fires next, asked while it is typed. */
export function usePreview(body: NewSchedule, readable: boolean) {
  const asked = {
    when: body.when,
    count: SHOWN,
    ...(body.start_at && { start_at: body.start_at }),
    ...(body.end_at && { end_at: body.end_at }),
  };
  const [settled] = useDebouncedValue(JSON.stringify(asked), PAUSE);
  return useQuery({
    queryKey: ['preview', settled],
    queryFn: ({ signal }) => call('POST /preview', { body: JSON.parse(settled) as typeof asked, signal }),
    placeholderData: keepPreviousData,
    enabled: readable,
    retry: false,
    staleTime: 10_000,
  });
}
