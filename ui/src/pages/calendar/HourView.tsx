import { CloseButton, Group, Paper, Skeleton, Text, Title, Tooltip } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { call } from '../../api/call';
import { ProblemNote } from '../../parts/ProblemNote';
import { useArrowKeys } from '../../parts/useArrowKeys';
import { serverNow } from '../../time/clock';
import { clockTime, day, zoneName } from '../../time/format';
import { useViewerZone } from '../../time/viewerZone';
import classes from './HourView.module.css';
import { MinuteFires } from './MinuteFires';

interface HourViewProps {
  hour: string;
  minute: string | null;
  onMinute: (at: string) => void;
  onClose: () => void;
}

const MINUTE = 60_000;
const MINUTES = Array.from({ length: 60 }, (_, minute) => minute);

/** One hour by the minute; a minute opens to what fires in it. */
export function HourView({ hour, minute, onMinute, onClose }: HourViewProps) {
  const zone = useViewerZone();
  const start = Date.parse(hour);
  const to = new Date(start + 60 * MINUTE).toISOString();
  const { data, error } = useQuery({
    queryKey: ['calendar', 'hour', hour],
    queryFn: ({ signal }) => call('GET /calendar', { query: { from: hour, to, bucket: '1m', tz: 'UTC' }, signal }),
  });
  const counts = new Map(data?.buckets.map((bucket) => [Date.parse(bucket.at), bucket.count]));
  const most = Math.max(1, ...counts.values());
  const { tabIndexOf, ...keys } = useArrowKeys(MINUTES.length, MINUTES.map((place) => Boolean(counts.get(start + place * MINUTE))));
  return (
    <Paper withBorder p="lg" component="section" aria-label="The hour by the minute">
      <Group justify="space-between" mb="sm">
        <Title order={2} size="h5">
          {day(start, zone, serverNow())}, {clockTime(start, zone, false)} to {clockTime(start + 60 * MINUTE, zone, false)} {zoneName(start, zone)}
        </Title>
        <CloseButton aria-label="Close the hour" onClick={onClose} />
      </Group>
      {error !== null && <ProblemNote error={error} />}
      {data === undefined && error === null && <Skeleton height={96} />}
      {data && (
        <div className={classes.root} role="toolbar" aria-label="Fires by minute" {...keys}>
          {MINUTES.map((place) => {
            const at = start + place * MINUTE;
            const count = counts.get(at) ?? 0;
            const words = `${clockTime(at, zone, false)}: ${count.toLocaleString('en')} fires`;
            const iso = new Date(at).toISOString();
            return (
              <Tooltip key={place} label={words}>
                <button type="button" className={classes.minute} disabled={count === 0} tabIndex={tabIndexOf(place)} aria-label={words} aria-pressed={iso === minute} onClick={() => onMinute(iso)}>
                  <span className={classes.bar} style={{ height: count ? `${Math.max(6, (100 * count) / most)}%` : 0 }} />
                </button>
              </Tooltip>
            );
          })}
        </div>
      )}
      <Text size="xs" c="dimmed" mt={6}>
        {minute ? '' : 'Choose a minute to see what fires in it.'}
      </Text>
      {minute && <MinuteFires minute={minute} />}
    </Paper>
  );
}
