import type { Task } from '../api/types';

/** The time limit of an attempt: the job's own, or the one that its task declares. */
export function timeoutText(
  job: { timeout: string | null; target: { type: string } },
  declared: Task | undefined,
): string {
  if (job.timeout !== null) return job.timeout;
  if (job.target.type !== 'task') return 'none';
  return declared ? `${declared.timeout ?? 'none'}, as declared by the task` : 'as declared by the task';
}
