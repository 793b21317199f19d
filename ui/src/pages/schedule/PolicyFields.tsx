import { Group, NumberInput, Radio, Stack, TextInput } from '@mantine/core';
import type { FieldErrors } from '../../forms/fieldErrors';
import { Section } from '../../forms/Section';
import type { MissedPolicy, Overlap, ScheduleDraft } from './scheduleDraft';

interface PolicyFieldsProps {
  draft: ScheduleDraft;
  onChange: (next: Partial<ScheduleDraft>) => void;
  errorAt: FieldErrors;
}

const OVERLAPS: ReadonlyArray<[Overlap, string, string]> = [
  ['skip', 'Skip it', 'A fire while the last job still runs is recorded as skipped'],
  ['queue', 'Wait', 'It starts when the one before has ended'],
  ['allow', 'Run both', 'They run side by side'],
  ['cancel_previous', 'Cancel the old one', 'The job that runs is asked to stop, the new one starts'],
];
const MISSED: ReadonlyArray<[MissedPolicy, string, string]> = [
  ['latest', 'Run the latest', 'One job for the last fire that was missed; the others are recorded as skipped'],
  ['all', 'Run all', 'A job for every fire that was missed'],
  ['skip', 'Skip them', 'All are recorded as skipped; the next fire runs as planned'],
];

export function PolicyFields({ draft, onChange, errorAt }: PolicyFieldsProps) {
  return (
    <Section title="When things go otherwise" about="Nothing is ever dropped in silence: whatever does not run is recorded with its reason.">
      <Radio.Group label="It is due again while its last job still runs" value={draft.overlap} onChange={(value) => onChange({ overlap: value as Overlap })} error={errorAt('overlap')}>
        <Choices choices={OVERLAPS} />
      </Radio.Group>
      <Radio.Group label="Fires were missed, because no planner was alive" value={draft.missed} onChange={(value) => onChange({ missed: value as MissedPolicy })} error={errorAt('missed.policy')}>
        <Choices choices={MISSED} />
      </Radio.Group>
      <Group grow align="flex-start">
        <TextInput label="Missed by at most" description="Older fires are skipped" placeholder="any time" value={draft.missedWithin} onChange={(event) => onChange({ missedWithin: event.currentTarget.value })} error={errorAt('missed.within')} />
        {draft.missed === 'all' && (
          <NumberInput label="At most so many" placeholder="all" min={1} allowDecimal={false} value={draft.missedMax} onChange={(value) => onChange({ missedMax: String(value) })} error={errorAt('missed.max')} />
        )}
        <TextInput label="Jitter" description="Spreads jobs over this time" value={draft.jitter} onChange={(event) => onChange({ jitter: event.currentTarget.value })} error={errorAt('jitter')} />
      </Group>
      <Group grow align="flex-start">
        <TextInput type="datetime-local" step={1} label="Not before" description={`In ${draft.tz}`} value={draft.startAt} onChange={(event) => onChange({ startAt: event.currentTarget.value })} error={errorAt('start_at')} />
        <TextInput type="datetime-local" step={1} label="Not after" description={`In ${draft.tz}`} value={draft.endAt} onChange={(event) => onChange({ endAt: event.currentTarget.value })} error={errorAt('end_at')} />
      </Group>
      <Group grow align="flex-start">
        <NumberInput label="At most so many runs" description="Then it has ended" placeholder="no limit" min={1} allowDecimal={false} value={draft.maxRuns} onChange={(value) => onChange({ maxRuns: String(value) })} error={errorAt('max_runs')} />
      </Group>
    </Section>
  );
}

function Choices({ choices }: { choices: ReadonlyArray<[value: string, label: string, description: string]> }) {
  return (
    <Stack gap={8} mt={6}>
      {choices.map(([value, label, description]) => (
        <Radio key={value} value={value} label={label} description={description} />
      ))}
    </Stack>
  );
}
