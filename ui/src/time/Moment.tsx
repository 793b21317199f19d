import { useNow } from './clock';
import { fullTime, relative } from './format';
import { useViewerZone } from './viewerZone';
import classes from './Moment.module.css';

interface MomentProps {
  at: string | null | undefined;
  /** "both" has how long from now below the time. */
  show?: 'time' | 'relative' | 'both';
  /** A second zone worth showing, such as the schedule's own. */
  also?: string;
  absent?: string;
}

/** A point in time, always with its zone. Plain elements only: tables hold hundreds of them. */
export function Moment({ at, show = 'time', also, absent = '–' }: MomentProps) {
  const zone = useViewerZone();
  const now = useNow();
  if (!at) return <span className={classes.absent}>{absent}</span>;
  const moment = Date.parse(at);
  const elsewhere = also && also !== zone ? fullTime(moment, also, now) : null;
  const hint = () => [fullTime(moment, zone, now), elsewhere, `${at} (UTC)`].filter(Boolean).join('\n');
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- the hint is made when it is wanted, no sooner
    <time dateTime={at} className={classes.root} onMouseEnter={(event) => event.currentTarget.setAttribute('title', hint())}>
      {show === 'relative' ? relative(moment, now) : fullTime(moment, zone, now)}
      {show === 'both' && <span className={classes.second}>{[relative(moment, now), elsewhere].filter(Boolean).join(' · ')}</span>}
    </time>
  );
}
