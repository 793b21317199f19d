import type { JobRow } from '../api/types';

/** An external worker runs the job and reports later. Until then, `due_at` is the deadline of that report. */
export const isExternal = (job: Pick<JobRow, 'state' | 'node'>): boolean =>
  job.state === 'running' && job.node === null;

/**
 * The external worker reported before the deadline. `due_at` is still that deadline, so it must not be shown
 * as the due time.
 */
export const wasReportedInTime = (job: Pick<JobRow, 'state' | 'due_at' | 'finished_at'>): boolean =>
  (job.state === 'succeeded' || job.state === 'dead') &&
  job.finished_at !== null &&
  Date.parse(job.finished_at) < Date.parse(job.due_at);
