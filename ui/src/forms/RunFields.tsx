import { Autocomplete, Group, NumberInput, Select, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { call } from '../api/call';
import type { FieldErrors } from './fieldErrors';
import { PairsInput } from './PairsInput';
import { RetryFields } from './RetryFields';
import type { RunDraft } from './runDraft';
import { Section } from './Section';

interface RunFieldsProps {
  draft: RunDraft;
  onChange: (next: Partial<RunDraft>) => void;
  errorAt: FieldErrors;
}

const DELIVERIES = [
  { value: 'at_least_once', label: 'At least once: runs again if its node is lost' },
  { value: 'at_most_once', label: 'At most once: never starts a second time' },
];

export function RunFields({ draft, onChange, errorAt }: RunFieldsProps) {
  const { data } = useQuery({
    queryKey: ['queues'],
    queryFn: ({ signal }) => call('GET /queues', { signal }),
  });
  return (
    <Section title="Run options">
      <Group grow align="flex-start">
        <Autocomplete
          label="Queue"
          description="Workers take jobs from queues"
          data={data?.items.map((queue) => queue.name) ?? []}
          value={draft.queue}
          onChange={(queue) => onChange({ queue })}
          error={errorAt('queue')}
        />
        <NumberInput
          label="Priority"
          description="0 to 9, 9 is the most urgent"
          min={0}
          max={9}
          allowDecimal={false}
          value={draft.priority}
          onChange={(value) => onChange({ priority: Number(value) || 0 })}
          error={errorAt('priority')}
        />
        <TextInput
          label="Timeout"
          description="For one attempt, e.g. 10m"
          placeholder="none"
          value={draft.timeout}
          onChange={(event) => onChange({ timeout: event.currentTarget.value })}
          error={errorAt('timeout')}
        />
      </Group>
      <Select
        label="Delivery"
        data={DELIVERIES}
        value={draft.delivery}
        onChange={(value) => onChange({ delivery: (value ?? 'at_least_once') as RunDraft['delivery'] })}
        allowDeselect={false}
        error={errorAt('delivery')}
      />
      <RetryFields draft={draft} onChange={onChange} errorAt={errorAt} />
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
