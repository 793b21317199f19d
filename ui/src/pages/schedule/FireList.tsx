import { Text } from '@mantine/core';
import type { Preview } from '../../api/types';
import { useNow } from '../../time/clock';
import { clockTime, day, relative, shortTime, zoneName } from '../../time/format';
import { useViewerZone } from '../../time/viewerZone';
import classes from './FireList.module.css';

/** Fires in the time zone of the page, and in the schedule's own if it differs. */
export function FireList({ fires, zone }: { fires: Preview['fires']; zone: string }) {
  const viewer = useViewerZone();
  const now = useNow();
  if (fires.length === 0)
    return (
      <Text size="sm" c="dimmed">
        No upcoming fires.
      </Text>
    );
  return (
    <ol className={classes.root}>
      {fires.map(({ at, note }) => {
        const instant = Date.parse(at);
        const sameTime = clockTime(instant, viewer) === clockTime(instant, zone);
        const ownTime = sameTime ? '' : shortTime(instant, zone);
        return (
          <li key={at} className={classes.fire}>
            <span>{day(instant, viewer, now)}</span>
            <span className={classes.time}>
              {clockTime(instant, viewer)} <span className={classes.soft}>{zoneName(instant, viewer)}</span>
            </span>
            <span className={classes.soft}>{ownTime || relative(instant, now)}</span>
            {note && <span className={classes.note}>{note}</span>}
          </li>
        );
      })}
    </ol>
  );
}
