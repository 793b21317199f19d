import { useQueryClient } from '@tanstack/react-query';
import { useLocation } from 'wouter';
import { call, newIdempotencyKey } from '../../api/call';
import type { Schedule } from '../../api/types';
import { complain, say } from '../../parts/toasts';

/** What can be done to a schedule, each told by a note when it is done or refused. */
export function useScheduleActions(schedule: Schedule) {
  const client = useQueryClient();
  const [, navigate] = useLocation();
  const path = { schedule_id: schedule.id };
  const act = async (work: () => Promise<unknown>, told: string) => {
    try {
      await work();
      say(told);
      await client.invalidateQueries();
    } catch (error) {
      complain(error);
    }
  };
  return {
    pause: (note: string) => void act(() => call('POST /schedules/{schedule_id}/pause', { path, body: note ? { note } : {} }), `${schedule.name} is paused`),
    resume: () => void act(() => call('POST /schedules/{schedule_id}/resume', { path }), `${schedule.name} fires again`),
    trigger: () =>
      void act(() => call('POST /schedules/{schedule_id}/trigger', { path, idempotencyKey: newIdempotencyKey() }), `A job of ${schedule.name} is on its way`),
    remove: () =>
      void act(async () => {
        await call('DELETE /schedules/{schedule_id}', { path, ifMatch: schedule.version });
        navigate('/schedules');
      }, `${schedule.name} is deleted`),
  };
}
