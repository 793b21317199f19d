import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { Link } from 'wouter';
import { call } from '../../api/call';
import type { JobRow, Schedule } from '../../api/types';
import { cells } from '../../parts/cells';
import { lasting } from '../../time/format';
import classes from './LastRuns.module.css';

const SHOWN = 12;
const LOWEST = 0.3;
const GLANCE = 250;

/** The last runs, oldest first: colour tells how they ended, height how long they took. Asked for once a row stays in view. */
export function LastRuns({ schedule }: { schedule: Schedule }) {
  const [stays, setStays] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setStays(true), GLANCE);
    return () => clearTimeout(timer);
  }, []);
  return stays ? <Bars schedule={schedule} /> : null;
}

function Bars({ schedule }: { schedule: Schedule }) {
  const { data } = useQuery({
    queryKey: ['schedule-runs', schedule.name],
    queryFn: ({ signal }) => call('GET /schedules/{schedule_id}/jobs', { path: { schedule_id: schedule.id }, query: { limit: SHOWN + 4 }, signal }),
    staleTime: 30_000,
  });
  const runs = (data?.items ?? []).filter((job) => job.state !== 'pending' && job.state !== 'queued').slice(0, SHOWN).toReversed();
  if (data && runs.length === 0) return <span className={cells.soft}>not yet</span>;
  const longest = Math.max(1, ...runs.map(duration));
  return (
    <span className={classes.root}>
      {runs.map((job) => {
        const words = `${job.state}${job.started_at ? ` in ${lasting(duration(job))}` : ''}`;
        return (
          <Link key={job.id} href={`/jobs/${job.id}`} className={classes.hit} aria-label={`Job ${words}`} title={words}>
            <span className={classes.bar} style={{ height: `${100 * Math.max(LOWEST, duration(job) / longest)}%`, background: `var(--state-${job.state})` }} />
          </Link>
        );
      })}
    </span>
  );
}

function duration(job: JobRow): number {
  return job.started_at ? (job.finished_at ? Date.parse(job.finished_at) : Date.now()) - Date.parse(job.started_at) : 0;
}
