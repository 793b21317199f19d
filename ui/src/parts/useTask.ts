import { useQuery } from '@tanstack/react-query';
import { call } from '../api/call';
import type { Task } from '../api/types';

/** All tasks that a running node knows; undefined while they are loading. */
export function useTasks(): Task[] | undefined {
  const { data } = useQuery({
    queryKey: ['tasks'],
    queryFn: ({ signal }) => call('GET /tasks', { signal }),
    staleTime: 30_000,
  });
  return data?.items;
}

export const useTask = (name: string): Task | undefined => useTasks()?.find((task) => task.name === name);

/** The task of a job or schedule, with what it declares. HTTP targets have none. */
export const useTaskOf = (target: { type: string; [key: string]: unknown }): Task | undefined =>
  useTask(target.type === 'task' ? String(target['name']) : '');
