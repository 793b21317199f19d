import { Group, NumberInput, Stack, Switch, Text, TextInput } from '@mantine/core';
import type { FieldErrors } from './fieldErrors';
import type { RunDraft } from './runDraft';

interface RetryFieldsProps {
  draft: RunDraft;
  onChange: (next: Partial<RunDraft>) => void;
  errorAt: FieldErrors;
}

export function RetryFields({ draft, onChange, errorAt }: RetryFieldsProps) {
  return (
    <Stack gap="xs">
      <Switch
        label="Own rule for retries"
        description="Otherwise the task's own rule holds, or five attempts, 5 s apart and doubling up to 1 h"
        checked={draft.retries}
        onChange={(event) => onChange({ retries: event.currentTarget.checked })}
      />
      {draft.retries && (
        <>
          <Group grow align="flex-start">
            <NumberInput label="Attempts" min={1} max={1000} allowDecimal={false} value={draft.maxAttempts} onChange={(value) => onChange({ maxAttempts: Number(value) || 1 })} error={errorAt('retry.max_attempts')} />
            <TextInput label="First wait" value={draft.firstDelay} onChange={(event) => onChange({ firstDelay: event.currentTarget.value })} error={errorAt('retry.first_delay')} />
            <NumberInput label="Times" min={1} max={100} value={draft.multiplier} onChange={(value) => onChange({ multiplier: Number(value) || 1 })} error={errorAt('retry.multiplier')} />
            <TextInput label="Longest wait" value={draft.maxDelay} onChange={(event) => onChange({ maxDelay: event.currentTarget.value })} error={errorAt('retry.max_delay')} />
          </Group>
          <Text size="xs" c="dimmed">
            {draft.maxAttempts === 1
              ? 'One attempt only: what fails is a dead letter at once.'
              : `After a failure it waits ${draft.firstDelay}, then ${draft.multiplier} times as long each time, at most ${draft.maxDelay}. After ${draft.maxAttempts} failures it is a dead letter.`}
          </Text>
        </>
      )}
    </Stack>
  );
}
