import { useLocation } from 'wouter';
import { call, newIdempotencyKey } from '../../api/call';
import type { Schedule } from '../../api/types';
import { useAction } from '../../parts/useAction';

export function useScheduleActions(schedule: Schedule) {
  const act = useAction();
  const [, navigate] = useLocation();
  const path = { schedule_id: schedule.id };
  const pause = (note: string) =>
    call('POST /schedules/{schedule_id}/pause', { path, body: note ? { note } : {} });
  return {
    pause,
    pauseWithoutNote: () => act(() => pause(''), `${schedule.name} paused`),
    resume: () =>
      act(() => call('POST /schedules/{schedule_id}/resume', { path }), `${schedule.name} resumed`),
    trigger: () =>
      act(
        () => call('POST /schedules/{schedule_id}/trigger', { path, idempotencyKey: newIdempotencyKey() }),
        `Created a job of ${schedule.name}`,
      ),
    remove: () =>
      act(async () => {
        await call('DELETE /schedules/{schedule_id}', { path, ifMatch: schedule.version });
        navigate('/schedules');
      }, `${schedule.name} deleted`),
  };
}
