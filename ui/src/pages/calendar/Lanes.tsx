import { Text, Tooltip } from '@mantine/core';
import { useLocation } from 'wouter';
import type { JobRow } from '../../api/types';
import { clockTime, lasting, zoneName } from '../../time/format';
import { useViewerZone } from '../../time/viewerZone';
import classes from './Lanes.module.css';

const MOST_LANES = 30;
const NARROWEST = 0.25;
const TICKS = 7; // odd: on a narrow screen every other is left out, and the last must stay

interface LanesProps {
  jobs: JobRow[];
  from: number;
  to: number;
}

/** Bars from start to end in lanes by schedule, the busiest first. What still runs is drawn from its claim: its start is known once it has ended. */
export function Lanes({ jobs, from, to }: LanesProps) {
  const zone = useViewerZone();
  const [, navigate] = useLocation();
  const lanes = [...Map.groupBy(jobs, (job) => job.schedule ?? 'one-off')].toSorted((a, b) => b[1].length - a[1].length);
  const share = (at: number) => (100 * (at - from)) / (to - from);
  return (
    <div className={classes.root}>
      {lanes.slice(0, MOST_LANES).map(([name, members]) => (
        <div key={name} className={classes.lane}>
          <Text size="xs" truncate>
            {name}
          </Text>
          <div className={classes.track}>
            {members.map((job) => {
              const start = Math.max(from, Date.parse(job.started_at ?? job.claimed_at ?? job.due_at));
              const end = job.finished_at ? Date.parse(job.finished_at) : to;
              const words = `${name}: ${job.state}, ${job.started_at ? 'started' : 'claimed'} ${clockTime(start, zone)} ${zoneName(start, zone)}, ${lasting(end - start)}`;
              return (
                <Tooltip key={job.id} label={words}>
                  <button
                    type="button"
                    tabIndex={-1}
                    aria-label={words}
                    className={classes.bar}
                    style={{ left: `${share(start)}%`, width: `${Math.max(NARROWEST, share(end) - share(start))}%`, background: `var(--state-${job.state})` }}
                    onClick={() => navigate(`/jobs/${job.id}`)}
                  />
                </Tooltip>
              );
            })}
          </div>
        </div>
      ))}
      <div className={classes.lane} aria-hidden="true">
        <span />
        <div className={classes.ticks}>
          {Array.from({ length: TICKS }, (_, index) => (
            <span key={index}>{clockTime(from + (index * (to - from)) / (TICKS - 1), zone, false)}</span>
          ))}
        </div>
      </div>
      {lanes.length > MOST_LANES && (
        <Text size="xs" c="dimmed">
          And {lanes.length - MOST_LANES} more schedules.
        </Text>
      )}
    </div>
  );
}
