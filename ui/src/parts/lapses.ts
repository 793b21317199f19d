import type { JobRow } from '../api/types';
import { wasReportedInTime } from './externalJob';

interface Lapses {
  /** Milliseconds of the latest attempt; null if it has not started or not ended. */
  duration: number | null;
  /** Milliseconds from the due time of the latest attempt to its start. */
  lateness: number | null;
}

export function lapsesOf(job: JobRow): Lapses {
  if (job.started_at === null) return { duration: null, lateness: null };
  const start = Date.parse(job.started_at);
  const due = Date.parse(wasReportedInTime(job) ? job.fire_time : job.due_at);
  return {
    duration: job.finished_at === null ? null : Date.parse(job.finished_at) - start,
    lateness: Math.max(0, start - due),
  };
}
