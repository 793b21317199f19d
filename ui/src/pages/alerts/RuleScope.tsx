import { Autocomplete, Group } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { call } from '../../api/call';
import type { FieldErrors } from '../../forms/fieldErrors';
import { CONDITIONS } from './conditions';
import type { RuleDraft } from './ruleDraft';
import { useSchedulesLike } from './useSchedulesLike';

interface RuleScopeProps {
  draft: RuleDraft;
  onChange: (next: Partial<RuleDraft>) => void;
  errorAt: FieldErrors;
}

/** Which schedules and queues the rule is for. Conditions of nodes have none. */
export function RuleScope({ draft, onChange, errorAt }: RuleScopeProps) {
  const { hasSchedule, hasQueue } = CONDITIONS[draft.condition];
  const schedules = useSchedulesLike(draft.schedule);
  const queues = useQuery({
    queryKey: ['queues'],
    queryFn: ({ signal }) => call('GET /queues', { signal }),
  });
  if (!hasSchedule && !hasQueue) return null;
  return (
    <Group grow align="flex-start">
      {hasSchedule && (
        <Autocomplete
          label="Schedule"
          description="A name, or a pattern with *"
          placeholder="all schedules"
          data={schedules?.map(({ name }) => name) ?? []}
          value={draft.schedule}
          onChange={(schedule) => onChange({ schedule })}
          error={errorAt('schedule')}
        />
      )}
      {hasQueue && (
        <Autocomplete
          label="Queue"
          description="A name, or a pattern with *"
          placeholder="all queues"
          data={queues.data?.items.map(({ name }) => name) ?? []}
          value={draft.queue}
          onChange={(queue) => onChange({ queue })}
          error={errorAt('queue')}
        />
      )}
    </Group>
  );
}
