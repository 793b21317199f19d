import { Text } from '@mantine/core';
import type { Preview } from '../../api/types';
import { useNow } from '../../time/clock';
import { clockTime, day, relative, zoneName } from '../../time/format';
import { useViewerZone } from '../../time/viewerZone';
import classes from './FireList.module.css';

/** Fires in the schedule's zone, and in the viewer's where that is another. */
export function FireList({ fires, zone }: { fires: Preview['fires']; zone: string }) {
  const viewer = useViewerZone();
  const now = useNow();
  if (fires.length === 0) return <Text size="sm" c="dimmed">It fires no more.</Text>;
  return (
    <ol className={classes.root}>
      {fires.map(({ at, note }) => {
        const moment = Date.parse(at);
        const mine = clockTime(moment, viewer) === clockTime(moment, zone) ? '' : `${clockTime(moment, viewer, false)} ${zoneName(moment, viewer)}`;
        return (
          <li key={at} className={classes.fire}>
            <span>{day(moment, zone, now)}</span>
            <span className={classes.time}>
              {clockTime(moment, zone)} <span className={classes.soft}>{zoneName(moment, zone)}</span>
            </span>
            <span className={classes.soft}>{mine || relative(moment, now)}</span>
            {note && <span className={classes.note}>{note}</span>}
          </li>
        );
      })}
    </ol>
  );
}
