import { useNow } from './clock';
import { fullTime, relative } from './format';
import { useViewerZone } from './viewerZone';
import classes from './Timestamp.module.css';

interface TimestampProps {
  at: string | null | undefined;
  /** "both" adds the time from now below it. */
  show?: 'time' | 'relative' | 'both';
  /** A second time zone to show, such as the schedule's own. */
  otherZone?: string;
  /** Shown if there is no time. */
  placeholder?: string;
}

/** A point in time with its time zone. It uses plain elements, because tables hold hundreds of them. */
export function Timestamp({ at, show = 'time', otherZone, placeholder = '–' }: TimestampProps) {
  const zone = useViewerZone();
  const now = useNow();
  if (!at) return <span className={classes.absent}>{placeholder}</span>;
  const instant = Date.parse(at);
  const otherTime = otherZone && otherZone !== zone ? fullTime(instant, otherZone, now) : null;
  const tooltip = () => [fullTime(instant, zone, now), otherTime, `${at} (UTC)`].filter(Boolean).join('\n');
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- the tooltip is built only when the pointer is over it
    <time
      dateTime={at}
      className={classes.root}
      onMouseEnter={(event) => event.currentTarget.setAttribute('title', tooltip())}
    >
      {show === 'relative' ? relative(instant, now) : fullTime(instant, zone, now)}
      {show === 'both' && (
        <span className={classes.second}>
          {[relative(instant, now), otherTime].filter(Boolean).join(' · ')}
        </span>
      )}
    </time>
  );
}
