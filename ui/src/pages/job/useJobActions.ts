import { useQueryClient } from '@tanstack/react-query';
import { call } from '../../api/call';
import type { JobRow } from '../../api/types';
import { complain, say } from '../../parts/toasts';

export function useJobActions(job: JobRow) {
  const client = useQueryClient();
  const path = { job_id: job.id };
  const act = async (work: () => Promise<unknown>, told: string) => {
    try {
      await work();
      say(told);
    } catch (error) {
      complain(error);
    }
    await client.invalidateQueries();
  };
  return {
    cancel: () => void act(() => call('DELETE /jobs/{job_id}', { path }), job.state === 'running' ? 'It is asked to stop' : 'The job is cancelled'),
    run: () => void act(() => call('POST /jobs/{job_id}/run', { path }), 'The job is due now'),
    discard: () => void act(() => call('POST /jobs/{job_id}/discard', { path }), 'The dead letter is discarded'),
  };
}
