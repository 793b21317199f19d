import { Checkbox, Group, NumberInput, Radio, Stack, TextInput } from '@mantine/core';
import type { FieldErrors } from '../../forms/fieldErrors';
import { Section } from '../../forms/Section';
import type { MissedPolicy, Overlap, ScheduleDraft } from './scheduleDraft';

interface PolicyFieldsProps {
  draft: ScheduleDraft;
  onChange: (next: Partial<ScheduleDraft>) => void;
  errorAt: FieldErrors;
}

const OVERLAPS: ReadonlyArray<[Overlap, string, string]> = [
  ['allow', 'Run both', 'Both jobs run at the same time'],
  ['skip', 'Skip', 'The new job does not run and is recorded as skipped'],
  ['queue', 'Wait', 'The new job starts when the previous one has finished'],
  ['cancel_previous', 'Cancel the previous job', 'The running job is asked to stop and the new one starts'],
];
const MISSED: ReadonlyArray<[MissedPolicy, string, string]> = [
  ['latest', 'Run the latest', 'One job for the latest missed fire. The others are recorded as skipped'],
  ['all', 'Run all', 'One job for every missed fire'],
  ['skip', 'Skip all', 'All missed fires are recorded as skipped. The next fire runs as planned'],
];

export function PolicyFields({ draft, onChange, errorAt }: PolicyFieldsProps) {
  return (
    <Section
      title="Overlap and missed fires"
      description="Fires that do not run are recorded as skipped, with the reason."
    >
      <Radio.Group
        label="If the previous job is still running"
        value={draft.overlap}
        onChange={(value) => onChange({ overlap: value as Overlap })}
        error={errorAt('overlap')}
      >
        <Choices choices={OVERLAPS} />
      </Radio.Group>
      <Radio.Group
        label="If fires were missed: no worker was running, or none had room"
        value={draft.missed}
        onChange={(value) => onChange({ missed: value as MissedPolicy })}
        error={errorAt('missed.policy')}
      >
        <Choices choices={MISSED} />
      </Radio.Group>
      <Checkbox
        label="A fire that waits for a limit counts as missed, too"
        description="Otherwise it runs when the limit lets it start, however late"
        checked={draft.missedWaiting}
        onChange={(event) => onChange({ missedWaiting: event.currentTarget.checked })}
      />
      <Group grow align="flex-start">
        {draft.missed !== 'skip' && (
          <TextInput
            label="Maximum age of missed fires"
            description="Older ones are skipped"
            placeholder="no limit"
            value={draft.missedWithin}
            onChange={(event) => onChange({ missedWithin: event.currentTarget.value })}
            error={errorAt('missed.within')}
          />
        )}
        {draft.missed === 'all' && (
          <NumberInput
            label="Maximum number of missed fires"
            placeholder="all"
            min={1}
            allowDecimal={false}
            value={draft.missedMax}
            onChange={(value) => onChange({ missedMax: String(value) })}
            error={errorAt('missed.max')}
          />
        )}
        <TextInput
          label="Jitter"
          description="Random delay of up to this time"
          value={draft.jitter}
          onChange={(event) => onChange({ jitter: event.currentTarget.value })}
          error={errorAt('jitter')}
        />
      </Group>
      <Group grow align="flex-start">
        <TextInput
          type="datetime-local"
          step={1}
          label="Starts at"
          description={`In ${draft.tz}`}
          value={draft.startAt}
          onChange={(event) => onChange({ startAt: event.currentTarget.value })}
          error={errorAt('start_at')}
        />
        <TextInput
          type="datetime-local"
          step={1}
          label="Ends at"
          description={`In ${draft.tz}`}
          value={draft.endAt}
          onChange={(event) => onChange({ endAt: event.currentTarget.value })}
          error={errorAt('end_at')}
        />
      </Group>
      <Group grow align="flex-start">
        <NumberInput
          label="Maximum number of runs"
          description="The schedule ends after the last one"
          placeholder="no limit"
          min={1}
          allowDecimal={false}
          value={draft.maxRuns}
          onChange={(value) => onChange({ maxRuns: String(value) })}
          error={errorAt('max_runs')}
        />
      </Group>
    </Section>
  );
}

function Choices({
  choices,
}: {
  choices: ReadonlyArray<[value: string, label: string, description: string]>;
}) {
  return (
    <Stack gap={8} mt={6}>
      {choices.map(([value, label, description]) => (
        <Radio key={value} value={value} label={label} description={description} />
      ))}
    </Stack>
  );
}
