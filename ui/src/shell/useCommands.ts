import { useComputedColorScheme, useMantineColorScheme } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useLocation } from 'wouter';
import { call } from '../api/call';
import { useLive } from '../live/liveContext';
import type { IconName } from '../parts/Icon';
import { PLACES } from './places';

export interface Command {
  id: string;
  label: string;
  hint: string;
  icon: IconName;
  run: () => void;
}

const JOB_ID = /^[0-9a-f]{8}-[0-9a-f-]{27}$/i;

/** Pages and actions that fit the text, and the schedules whose name does. */
export function useCommands(text: string): { commands: Command[]; searching: boolean } {
  const fixed = useFixedCommands();
  const [, navigate] = useLocation();
  const wanted = text.trim();
  const [asked] = useDebouncedValue(wanted, 120);
  const { data, isFetching } = useQuery({
    queryKey: ['schedules', 'palette', asked],
    queryFn: ({ signal }) => call('GET /schedules', { query: { text: asked, limit: 8 }, signal }),
    enabled: asked.length > 0,
    staleTime: 5_000,
  });
  const fitting = fixed.filter((command) => command.label.toLowerCase().includes(wanted.toLowerCase()));
  const jobs = JOB_ID.test(wanted)
    ? [{ id: 'job', label: `Job ${wanted}`, hint: 'Open', icon: 'job' as const, run: () => navigate(`/jobs/${wanted}`) }]
    : [];
  const schedules = (wanted ? (data?.items ?? []) : []).map((schedule) => ({
    id: schedule.id,
    label: schedule.name,
    hint: schedule.description,
    icon: 'schedule' as const,
    run: () => navigate(`/schedules/${schedule.id}`),
  }));
  return { commands: [...jobs, ...fitting, ...schedules], searching: isFetching && wanted.length > 0 };
}

function useFixedCommands(): Command[] {
  const [, navigate] = useLocation();
  const { status, toggle } = useLive();
  const { setColorScheme } = useMantineColorScheme();
  const other = useComputedColorScheme('light') === 'dark' ? 'light' : 'dark';
  return [
    ...PLACES.map((place) => ({ id: place.path, label: place.label, hint: `g ${place.shortcut}`, icon: place.icon, run: () => navigate(place.path) })),
    { id: 'create', label: 'Create a schedule', hint: 'c', icon: 'plus', run: () => navigate('/schedules/new') },
    { id: 'submit', label: 'Submit a job', hint: 'x', icon: 'bolt', run: () => navigate('/jobs/new') },
    { id: 'running', label: 'Jobs that run now', hint: 'Jobs', icon: 'job', run: () => navigate('/jobs?state=running') },
    { id: 'paused', label: 'Schedules that are paused', hint: 'Schedules', icon: 'pause', run: () => navigate('/schedules?paused=true') },
    { id: 'live', label: status === 'paused' ? 'Follow changes again' : 'Pause live updates', hint: 'Shift P', icon: 'pause', run: toggle },
    { id: 'theme', label: `Switch to ${other}`, hint: 'Appearance', icon: other === 'dark' ? 'moon' : 'sun', run: () => setColorScheme(other) },
  ];
}
