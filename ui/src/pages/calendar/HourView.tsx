import { CloseButton, Group, Paper, Skeleton, Text, Title, Tooltip } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { call } from '../../api/call';
import { plural } from '../../parts/plural';
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

/** The minutes of one hour. Selecting a minute lists its fires. */
export function HourView({ hour, minute, onMinute, onClose }: HourViewProps) {
  const zone = useViewerZone();
  const start = Date.parse(hour);
  const to = new Date(start + 60 * MINUTE).toISOString();
  const { data, error } = useQuery({
    queryKey: ['calendar', 'hour', hour],
    queryFn: ({ signal }) =>
      call('GET /calendar', { query: { from: hour, to, bucket: '1m', tz: 'UTC' }, signal }),
  });
  const counts = new Map(data?.buckets.map((bucket) => [Date.parse(bucket.at), bucket.count]));
  const max = Math.max(1, ...counts.values());
  const { tabIndexOf, ...keys } = useArrowKeys(
    MINUTES.length,
    MINUTES.map((index) => Boolean(counts.get(start + index * MINUTE))),
  );
  return (
    <Paper withBorder p="lg" component="section" aria-label="Fires of the hour">
      <Group justify="space-between" mb="sm">
        <Title order={2} size="h5">
          {day(start, zone, serverNow())}, {clockTime(start, zone, false)} to{' '}
          {clockTime(start + 60 * MINUTE, zone, false)} {zoneName(start, zone)}
        </Title>
        <CloseButton aria-label="Close hour" onClick={onClose} />
      </Group>
      {error !== null && <ProblemNote error={error} />}
      {data === undefined && error === null && <Skeleton height={96} />}
      {data && (
        <div className={classes.root} role="toolbar" aria-label="Fires by minute" {...keys}>
          {MINUTES.map((index) => {
            const at = start + index * MINUTE;
            const count = counts.get(at) ?? 0;
            const text = `${clockTime(at, zone, false)}: ${plural(count, 'fire')}`;
            const iso = new Date(at).toISOString();
            return (
              <Tooltip key={index} label={text}>
                <button
                  type="button"
                  className={classes.minute}
                  disabled={count === 0}
                  tabIndex={tabIndexOf(index)}
                  aria-label={text}
                  aria-pressed={iso === minute}
                  onClick={() => onMinute(iso)}
                >
                  <span
                    className={classes.bar}
                    style={{ height: count ? `${Math.max(6, (100 * count) / max)}%` : 0 }}
                  />
                </button>
              </Tooltip>
            );
          })}
        </div>
      )}
      <Text size="xs" c="dimmed" mt={6}>
        {minute ? '' : 'Select a minute to see its fires.'}
      </Text>
      {minute && <MinuteFires minute={minute} />}
    </Paper>
  );
}
