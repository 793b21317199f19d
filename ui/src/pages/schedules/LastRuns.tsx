import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { Link } from 'wouter';
import { call } from '../../api/call';
import type { JobRow, Schedule } from '../../api/types';
import { cells } from '../../parts/cells';
import { formatDuration } from '../../time/format';
import classes from './LastRuns.module.css';

const MAX_RUNS = 12;
const MIN_HEIGHT = 0.3;
const VISIBLE_DELAY = 250;

/**
 * The last runs, oldest first: the colour shows the outcome, the height the duration. Fetched only if the row
 * stays in view.
 */
export function LastRuns({ schedule }: { schedule: Schedule }) {
  const [visible, setVisible] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setVisible(true), VISIBLE_DELAY);
    return () => clearTimeout(timer);
  }, []);
  return visible ? <Bars schedule={schedule} /> : null;
}

function Bars({ schedule }: { schedule: Schedule }) {
  const { data } = useQuery({
    queryKey: ['schedule-runs', schedule.name],
    queryFn: ({ signal }) =>
      call('GET /schedules/{schedule_id}/jobs', {
        path: { schedule_id: schedule.id },
        query: { limit: MAX_RUNS + 4 },
        signal,
      }),
    staleTime: 30_000,
  });
  const runs = (data?.items ?? [])
    .filter((job) => job.state !== 'pending')
    .slice(0, MAX_RUNS)
    .toReversed();
  if (data && runs.length === 0) return <span className={cells.soft}>none yet</span>;
  const longest = Math.max(1, ...runs.map(duration));
  return (
    <span className={classes.root}>
      {runs.map((job) => {
        const text = `${job.state}${job.started_at ? ` in ${formatDuration(duration(job))}` : ''}`;
        return (
          <Link
            key={job.id}
            href={`/jobs/${job.id}`}
            className={classes.hit}
            aria-label={`Job ${text}`}
            title={text}
          >
            <span
              className={classes.bar}
              style={{
                height: `${100 * Math.max(MIN_HEIGHT, duration(job) / longest)}%`,
                background: `var(--state-${job.state})`,
              }}
            />
          </Link>
        );
      })}
    </span>
  );
}

function duration(job: JobRow): number {
  return job.started_at
    ? (job.finished_at ? Date.parse(job.finished_at) : Date.now()) - Date.parse(job.started_at)
    : 0;
}
