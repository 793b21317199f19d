import { useQueryClient } from '@tanstack/react-query';
import { call } from '../../api/call';
import { complain, say } from '../../parts/toasts';

export function useQueueActions() {
  const client = useQueryClient();
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
    pause: (name: string, note: string) => void act(() => call('POST /queues/{name}/pause', { path: { name }, body: note ? { note } : {} }), `The queue ${name} is paused`),
    resume: (name: string) => void act(() => call('POST /queues/{name}/resume', { path: { name } }), `The queue ${name} goes on`),
  };
}
