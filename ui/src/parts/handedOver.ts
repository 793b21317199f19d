import type { JobRow } from '../api/types';

/** Its agent works on it elsewhere and reports later; `due_at` is then the moment by which that report must come. */
export const isHandedOver = (job: Pick<JobRow, 'state' | 'node'>): boolean => job.state === 'running' && job.node === null;

/** Its agent reported in time; `due_at` is still the moment by which it should have, and tells nothing any more. */
export const wasReported = (job: Pick<JobRow, 'state' | 'due_at' | 'finished_at'>): boolean =>
  (job.state === 'succeeded' || job.state === 'dead') && job.finished_at !== null && Date.parse(job.finished_at) < Date.parse(job.due_at);
