import { call } from '../../api/call';
import type { JobRow } from '../../api/types';
import { useAction } from '../../parts/useAction';

export function useJobActions(job: JobRow) {
  const act = useAction();
  const path = { job_id: job.id };
  return {
    cancel: (reason: string) => call('DELETE /jobs/{job_id}', { path, ...(reason && { query: { reason } }) }),
    run: () => act(() => call('POST /jobs/{job_id}/run', { path }), 'Job is due now'),
    discard: () => act(() => call('POST /jobs/{job_id}/discard', { path }), 'Dead letter discarded'),
  };
}
