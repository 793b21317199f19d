import { call } from '../../api/call';
import { useAction } from '../../parts/useAction';

export function useQueueActions() {
  const act = useAction();
  return {
    pause: (name: string, note: string) =>
      call('POST /queues/{name}/pause', { path: { name }, body: note ? { note } : {} }),
    resume: (name: string) =>
      act(() => call('POST /queues/{name}/resume', { path: { name } }), `Queue ${name} resumed`),
  };
}
