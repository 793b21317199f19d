import { useComputedColorScheme, useMantineColorScheme } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useLocation } from 'wouter';
import { call } from '../api/call';
import { useLive } from '../live/liveContext';
import type { Command } from './command';
import { PAGES } from './routes';

/** The first digits of a job's id, or the last ones as this UI shows them. */
const JOB_ID = /^(…|\.{3})?[0-9a-f][0-9a-f-]{3,35}$/i;
const MAX_TASKS = 8;

/** Pages, actions, schedules, tasks and jobs that match the text. */
export function useCommands(text: string): { commands: Command[]; searching: boolean } {
  const fixedCommands = useFixedCommands();
  const [, navigate] = useLocation();
  const query = text.trim();
  const [debounced] = useDebouncedValue(query, 120);
  const isTyping = query !== debounced;
  const fits = (name: string) => name.toLowerCase().includes(query.toLowerCase());
  const { data, isFetching, isPlaceholderData } = useQuery({
    queryKey: ['schedules', 'palette', debounced],
    queryFn: ({ signal }) => call('GET /schedules', { query: { text: debounced, limit: 8 }, signal }),
    enabled: debounced.length > 0,
    placeholderData: keepPreviousData,
    staleTime: 5_000,
  });
  const matching = fixedCommands.filter((command) => fits(command.label));
  const isJobId = JOB_ID.test(debounced);
  const found = useQuery({
    queryKey: ['jobs', 'palette', debounced],
    queryFn: ({ signal }) => call('GET /jobs', { query: { id: debounced, limit: 8 }, signal }),
    enabled: isJobId,
    staleTime: 5_000,
  });
  const jobs = (isTyping ? [] : (found.data?.items ?? [])).map((job) => ({
    id: job.id,
    label: `Job ${job.id}`,
    hint: job.state,
    icon: 'job' as const,
    run: () => navigate(`/jobs/${job.id}`),
  }));
  const known = useQuery({
    queryKey: ['tasks'],
    queryFn: ({ signal }) => call('GET /tasks', { signal }),
    enabled: debounced.length > 0,
    staleTime: 5_000,
  });
  const tasks = (query ? (known.data?.items ?? []) : [])
    .filter((task) => fits(task.name))
    .slice(0, MAX_TASKS)
    .map((task) => ({
      id: `task ${task.name}`,
      label: task.name,
      hint: task.doc ?? 'Task',
      icon: 'bolt' as const,
      run: () => navigate(`/tasks/${encodeURIComponent(task.name)}`),
    }));
  // Until those of this text are here: those found before that have it in their names.
  const isFound = !isTyping && !isPlaceholderData;
  const schedules = (query ? (data?.items ?? []) : [])
    .filter((schedule) => isFound || fits(schedule.name))
    .map((schedule) => ({
      id: schedule.id,
      label: schedule.name,
      hint: schedule.description,
      icon: 'schedule' as const,
      run: () => navigate(`/schedules/${schedule.id}`),
    }));
  return {
    commands: [...jobs, ...matching, ...schedules, ...tasks],
    searching: query.length > 0 && (isTyping || isFetching || found.isFetching || known.isLoading),
  };
}

function useFixedCommands(): Command[] {
  const [, navigate] = useLocation();
  const { status, toggle } = useLive();
  const { setColorScheme } = useMantineColorScheme();
  const other = useComputedColorScheme('light') === 'dark' ? 'light' : 'dark';
  return [
    ...PAGES.map((page) => ({
      id: page.path,
      label: page.label,
      hint: `g ${page.shortcut}`,
      icon: page.icon,
      run: () => navigate(page.path),
    })),
    {
      id: 'create',
      label: 'Create a schedule',
      hint: 'c',
      icon: 'plus',
      run: () => navigate('/schedules/new'),
    },
    { id: 'submit', label: 'Submit a job', hint: 'x', icon: 'bolt', run: () => navigate('/jobs/new') },
    {
      id: 'running',
      label: 'Running jobs',
      hint: 'Jobs',
      icon: 'job',
      run: () => navigate('/jobs?state=running'),
    },
    {
      id: 'paused',
      label: 'Paused schedules',
      hint: 'Schedules',
      icon: 'pause',
      run: () => navigate('/schedules?paused=true'),
    },
    {
      id: 'live',
      label: status === 'paused' ? 'Resume live updates' : 'Pause live updates',
      hint: 'Shift P',
      icon: 'pause',
      run: toggle,
    },
    {
      id: 'theme',
      label: `Switch to ${other} theme`,
      hint: 'Appearance',
      icon: other === 'dark' ? 'moon' : 'sun',
      run: () => setColorScheme(other),
    },
  ];
}
