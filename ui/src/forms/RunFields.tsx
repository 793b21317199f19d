import { Autocomplete, NumberInput, Select, SimpleGrid, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { call } from '../api/call';
import { DEFAULTS } from '../api/schema';
import { useTask } from '../parts/useTask';
import type { FieldErrors } from './fieldErrors';
import { PairsInput } from './PairsInput';
import { RetryFields } from './RetryFields';
import type { RunDraft } from './runDraft';
import { Section } from './Section';
import type { TargetDraft } from './targetDraft';

interface RunFieldsProps {
  draft: RunDraft & TargetDraft;
  onChange: (next: Partial<RunDraft>) => void;
  errorAt: FieldErrors;
}

const DELIVERIES = {
  at_least_once: 'At least once: runs again if its node is lost',
  at_most_once: 'At most once: never starts a second time',
};

export function RunFields({ draft, onChange, errorAt }: RunFieldsProps) {
  const { data } = useQuery({
    queryKey: ['queues'],
    queryFn: ({ signal }) => call('GET /queues', { signal }),
  });
  const isTask = draft.kind === 'task';
  const declared = useTask(isTask ? draft.task.trim() : '');
  /** What applies to an empty field. */
  const unset = (value: string | number | null | undefined, fallback: string | number) =>
    !isTask
      ? String(fallback)
      : declared
        ? `${value ?? 'none'}, as declared by the task`
        : 'as declared by the task';
  return (
    <Section
      title="Run options"
      description={isTask ? 'What you leave empty stays as the task declares it.' : undefined}
    >
      <SimpleGrid cols={{ base: 2, sm: 4 }}>
        <Autocomplete
          label="Queue"
          description="Workers take jobs from queues"
          placeholder={unset(declared?.queue, DEFAULTS.NewScheduleIn.queue)}
          data={data?.items.map((queue) => queue.name) ?? []}
          value={draft.queue}
          onChange={(queue) => onChange({ queue })}
          error={errorAt('queue')}
        />
        <NumberInput
          label="Priority"
          description="0 to 9, 9 is the most urgent"
          placeholder={unset(declared?.priority, DEFAULTS.NewScheduleIn.priority)}
          min={0}
          max={9}
          allowDecimal={false}
          value={draft.priority}
          onChange={(value) => onChange({ priority: value === '' ? '' : Number(value) })}
          error={errorAt('priority')}
        />
        <TextInput
          label="Timeout"
          description="For one attempt, e.g. 10m"
          placeholder={unset(declared?.timeout, 'none')}
          value={draft.timeout}
          onChange={(event) => onChange({ timeout: event.currentTarget.value })}
          error={errorAt('timeout')}
        />
        <TextInput
          label="Expires"
          description="Skipped if not started so long after it is due"
          placeholder="never"
          value={draft.expires}
          onChange={(event) => onChange({ expires: event.currentTarget.value })}
          error={errorAt('expires')}
        />
      </SimpleGrid>
      <Select
        label="Delivery"
        placeholder={unset(
          declared?.delivery && DELIVERIES[declared.delivery],
          DELIVERIES[DEFAULTS.NewScheduleIn.delivery],
        )}
        data={Object.entries(DELIVERIES).map(([value, label]) => ({ value, label }))}
        value={draft.delivery || null}
        onChange={(value) => onChange({ delivery: (value ?? '') as RunDraft['delivery'] })}
        clearable
        clearButtonProps={{ 'aria-label': 'Clear delivery' }}
        error={errorAt('delivery')}
      />
      <RetryFields draft={draft} declared={declared} onChange={onChange} errorAt={errorAt} />
      <TextInput
        label="Owner"
        description="The person or team responsible"
        placeholder="none"
        value={draft.owner}
        onChange={(event) => onChange({ owner: event.currentTarget.value })}
        error={errorAt('owner')}
        maw={320}
      />
      <PairsInput
        label="Labels"
        description="Your own names and values, for filtering"
        keyPlaceholder="team"
        pairs={draft.labels}
        onChange={(labels) => onChange({ labels })}
        error={errorAt('labels')}
      />
    </Section>
  );
}
