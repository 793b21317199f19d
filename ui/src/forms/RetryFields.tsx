import { Group, NumberInput, Select, Stack, Switch, Text, TextInput } from '@mantine/core';
import { MoreOptions } from '../parts/MoreOptions';
import type { FieldErrors } from './fieldErrors';
import { DEFAULTS } from '../api/schema';
import type { Task } from '../api/types';
import { EMPTY_RUN, draftOfRun, hasDelays, hasMultiplier, isRandom, type RunDraft } from './runDraft';

interface RetryFieldsProps {
  draft: RunDraft;
  declared: Task | undefined;
  onChange: (next: Partial<RunDraft>) => void;
  errorAt: FieldErrors;
}

const BACKOFFS = [
  { value: 'exponential', label: 'Exponential: multiplied each time' },
  { value: 'linear', label: 'Linear: grows by the first delay' },
];

function describeRetry(draft: RunDraft): string {
  const maxAttempts = draft.maxAttempts || EMPTY_RUN.maxAttempts;
  if (maxAttempts === 1) return 'one attempt, with no retry';
  return `${maxAttempts} attempts, ${describeDelays(draft)}`;
}

function describeDelays({ firstDelay, maxDelay, backoff, delays, ...draft }: RunDraft): string {
  if (delays.trim()) return `with delays of ${delays.trim()}, the last one repeated`;
  if (backoff === 'linear') return `with delays that grow by ${firstDelay} each time, up to ${maxDelay}`;
  const multiplier = draft.multiplier || EMPTY_RUN.multiplier;
  return `with a delay of ${firstDelay} that is multiplied by ${multiplier} each time, up to ${maxDelay}`;
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
              disabled={hasDelays(draft)}
              value={draft.firstDelay}
              onChange={(event) => onChange({ firstDelay: event.currentTarget.value })}
              error={errorAt('retry.first_delay')}
            />
            <NumberInput
              label="Multiplier"
              disabled={!hasMultiplier(draft)}
              placeholder={String(EMPTY_RUN.multiplier)}
              min={1}
              max={100}
              value={draft.multiplier}
              onChange={(value) => onChange({ multiplier: value === '' ? '' : Number(value) })}
              error={errorAt('retry.multiplier')}
            />
            <TextInput
              label="Max delay"
              disabled={hasDelays(draft)}
              value={draft.maxDelay}
              onChange={(event) => onChange({ maxDelay: event.currentTarget.value })}
              error={errorAt('retry.max_delay')}
            />
          </Group>
          <Switch
            label="Random delays"
            description="From zero up to the delay, so that many failed jobs do not come back together"
            checked={isRandom(draft)}
            onChange={(event) => onChange({ retryJitter: event.currentTarget.checked })}
          />
          <MoreRetryFields draft={draft} onChange={onChange} errorAt={errorAt} />
          <Text size="xs" c="dimmed">
            A job gets {describeRetry(draft)}. If the last attempt fails, it becomes a dead letter.
          </Text>
        </>
      )}
    </Stack>
  );
}

/** What few policies set. Open if this policy does. */
function MoreRetryFields({ draft, onChange, errorAt }: Omit<RetryFieldsProps, 'declared'>) {
  const isUsed =
    draft.backoff !== EMPTY_RUN.backoff || draft.delays + draft.maxAge !== '' || draft.maxLosses !== '';
  return (
    <MoreOptions label="More retry options" isUsed={isUsed} gap="xs">
      <Group grow align="flex-start">
        <TextInput
          label="Delays"
          description="In place of those above, e.g. 10s, 1m, 15m"
          placeholder="none"
          value={draft.delays}
          onChange={(event) => onChange({ delays: event.currentTarget.value })}
          error={errorAt('retry.delays')}
        />
        <Select
          label="Backoff"
          disabled={hasDelays(draft)}
          description="How the first delay grows"
          data={BACKOFFS}
          value={draft.backoff}
          onChange={(backoff) => onChange({ backoff: (backoff ?? 'exponential') as RunDraft['backoff'] })}
          allowDeselect={false}
          error={errorAt('retry.backoff')}
        />
      </Group>
      <Group grow align="flex-start">
        <TextInput
          label="Max age"
          description="No attempt starts so long after the fire time"
          placeholder="no limit"
          value={draft.maxAge}
          onChange={(event) => onChange({ maxAge: event.currentTarget.value })}
          error={errorAt('retry.max_age')}
        />
        <NumberInput
          label="Max losses"
          description="Workers that may die with this job"
          placeholder={String(DEFAULTS.RetryIn.max_losses)}
          min={1}
          allowDecimal={false}
          value={draft.maxLosses}
          onChange={(value) => onChange({ maxLosses: value === '' ? '' : Number(value) })}
          error={errorAt('retry.max_losses')}
        />
      </Group>
    </MoreOptions>
  );
}
