import { Text, Tooltip } from '@mantine/core';
import { useLocation } from 'wouter';
import type { JobRow } from '../../api/types';
import { plural } from '../../parts/plural';
import { clockTime, formatDuration, zoneName } from '../../time/format';
import { useViewerZone } from '../../time/viewerZone';
import classes from './Lanes.module.css';

const MAX_LANES = 30;
const MIN_BAR_WIDTH = 0.25;
const TICKS = 7; // odd, so that a narrow screen can hide every other tick and keep the last

interface LanesProps {
  jobs: JobRow[];
  from: number;
  to: number;
}

/**
 * One lane per schedule, the busiest first, with a bar from start to end of each job. A running job is drawn
 * from its claim: its start is recorded when the attempt ends.
 */
export function Lanes({ jobs, from, to }: LanesProps) {
  const zone = useViewerZone();
  const [, navigate] = useLocation();
  const lanes = [...Map.groupBy(jobs, (job) => job.schedule ?? 'one-off')].toSorted(
    (a, b) => b[1].length - a[1].length,
  );
  const share = (at: number) => (100 * (at - from)) / (to - from);
  return (
    <div className={classes.root}>
      {lanes.slice(0, MAX_LANES).map(([name, laneJobs]) => (
        <div key={name} className={classes.lane}>
          <Text size="xs" truncate>
            {name}
          </Text>
          <div className={classes.track}>
            {laneJobs.map((job) => {
              const start = Math.max(from, Date.parse(job.started_at ?? job.claimed_at ?? job.due_at));
              const end = job.finished_at ? Date.parse(job.finished_at) : to;
              const text = `${name}: ${job.state}, ${job.started_at ? 'started' : 'claimed'} ${clockTime(start, zone)} ${zoneName(start, zone)}, ${formatDuration(end - start)}`;
              return (
                <Tooltip key={job.id} label={text}>
                  <button
                    type="button"
                    tabIndex={-1}
                    aria-label={text}
                    className={classes.bar}
                    style={{
                      left: `${share(start)}%`,
                      width: `${Math.max(MIN_BAR_WIDTH, share(end) - share(start))}%`,
                      background: `var(--state-${job.state})`,
                    }}
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
      {lanes.length > MAX_LANES && (
        <Text size="xs" c="dimmed">
          {plural(lanes.length - MAX_LANES, 'more schedule')} not shown.
        </Text>
      )}
    </div>
  );
}
