import type { JobRow } from '../api/types';

/** Its agent works on it elsewhere and reports later; `due_at` is then the moment by which that report must come. */
export const isHandedOver = (job: Pick<JobRow, 'state' | 'node'>): boolean => job.state === 'running' && job.node === null;
