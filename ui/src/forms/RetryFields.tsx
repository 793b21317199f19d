import { Group, NumberInput, Stack, Switch, Text, TextInput } from '@mantine/core';
import type { FieldErrors } from './fieldErrors';
import type { Task } from '../api/types';
import { EMPTY_RUN, draftOfRun, type RunDraft } from './runDraft';

interface RetryFieldsProps {
  draft: RunDraft;
  declared: Task | undefined;
  onChange: (next: Partial<RunDraft>) => void;
  errorAt: FieldErrors;
}

function describeRetry({ firstDelay, maxDelay, ...draft }: RunDraft): string {
  const maxAttempts = draft.maxAttempts || EMPTY_RUN.maxAttempts;
  const multiplier = draft.multiplier || EMPTY_RUN.multiplier;
  if (maxAttempts === 1) return 'one attempt, with no retry';
  return `${maxAttempts} attempts, with a delay of ${firstDelay} that is multiplied by ${multiplier} each time, up to ${maxDelay}`;
}

export function RetryFields({ draft, declared, onChange, errorAt }: RetryFieldsProps) {
  const own = declared?.retry;
  return (
    <Stack gap="xs">
      <Switch
        label="Custom retry policy"
        description={
          own
            ? `If off, as declared by the task: ${describeRetry(draftOfRun({ retry: own }))}`
            : `If off, the policy of the task applies, or the default: ${describeRetry(EMPTY_RUN)}`
        }
        checked={draft.customRetry}
        onChange={(event) => onChange({ customRetry: event.currentTarget.checked })}
      />
      {draft.customRetry && (
        <>
          <Group grow align="flex-start">
            <NumberInput
              label="Max attempts"
              placeholder={String(EMPTY_RUN.maxAttempts)}
              min={1}
              max={1000}
              allowDecimal={false}
              value={draft.maxAttempts}
              onChange={(value) => onChange({ maxAttempts: value === '' ? '' : Number(value) })}
              error={errorAt('retry.max_attempts')}
            />
            <TextInput
              label="First delay"
              value={draft.firstDelay}
              onChange={(event) => onChange({ firstDelay: event.currentTarget.value })}
              error={errorAt('retry.first_delay')}
            />
            <NumberInput
              label="Multiplier"
              placeholder={String(EMPTY_RUN.multiplier)}
              min={1}
              max={100}
              value={draft.multiplier}
              onChange={(value) => onChange({ multiplier: value === '' ? '' : Number(value) })}
              error={errorAt('retry.multiplier')}
            />
            <TextInput
              label="Max delay"
              value={draft.maxDelay}
              onChange={(event) => onChange({ maxDelay: event.currentTarget.value })}
              error={errorAt('retry.max_delay')}
            />
          </Group>
          <Switch
            label="Random delays"
            description="From zero up to the delay, so that many failed jobs do not come back together"
            checked={draft.retryJitter}
            onChange={(event) => onChange({ retryJitter: event.currentTarget.checked })}
          />
          <Text size="xs" c="dimmed">
            A job gets {describeRetry(draft)}. If the last attempt fails, it becomes a dead letter.
          </Text>
        </>
      )}
    </Stack>
  );
}
