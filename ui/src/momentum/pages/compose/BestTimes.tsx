import { Button, Group, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { plural } from '../../../parts/plural';
import { serverNow } from '../../../time/clock';
import { call } from '../../api/call';
import { nextWeekday, quickTimes } from './quickTimes';

interface BestTimesProps {
  accountId: string | undefined;
  zone: string;
  onPick: (date: string, time: string) => void;
}

const MAX_HINTS = 3;
const WEEKDAYS = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'];

/** Quick choices, and the hours at which this account has published most. */
export function BestTimes({ accountId, zone, onPick }: BestTimesProps) {
  const { data } = useQuery({
    queryKey: ['hints', accountId, zone],
    queryFn: ({ signal }) => call('GET /hints', { query: { account: accountId ?? '', zone }, signal }),
    enabled: accountId !== undefined,
    staleTime: 60_000,
  });
  const hints = (data?.hints ?? []).slice(0, MAX_HINTS);
  return (
    <div>
      <Group gap={6} mt="sm">
        {quickTimes(serverNow(), zone).map(({ label, date, time }) => (
          <Button key={label} size="compact-xs" variant="default" onClick={() => onPick(date, time)}>
            {label}
          </Button>
        ))}
        {hints.map(({ weekday, hour, posts }) => {
          const time = `${String(hour).padStart(2, '0')}:00`;
          return (
            <Button
              key={`${weekday} ${hour}`}
              size="compact-xs"
              variant="light"
              title={`${plural(posts, 'post')} of this account went out at this hour`}
              onClick={() => onPick(nextWeekday(serverNow(), zone, weekday, time), time)}
            >
              {WEEKDAYS[weekday]} {time}
            </Button>
          );
        })}
      </Group>
      {data && (
        <Text size="xs" c="dimmed" mt={6}>
          {hints.length > 0
            ? `Highlighted: when most of your ${plural(data.posts, 'published post')} of this account went out.`
            : data.reason}
        </Text>
      )}
    </div>
  );
}
