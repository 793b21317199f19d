import { Button, Group, SegmentedControl, Select, Textarea, TextInput } from '@mantine/core';
import type { FieldErrors } from '../../forms/fieldErrors';
import { Section } from '../../forms/Section';
import { ZONES } from '../../time/viewerZone';
import type { WhenDraft, WhenKind } from './whenDraft';

interface WhenFieldsProps {
  draft: WhenDraft;
  onChange: (next: Partial<WhenDraft>) => void;
  error: string | undefined;
  errorAt: FieldErrors;
}

const KINDS = [
  { value: 'cron', label: 'Cron' },
  { value: 'every', label: 'Interval' },
  { value: 'at', label: 'Once' },
  { value: 'rrule', label: 'RRULE' },
];
const EXAMPLES: ReadonlyArray<[text: string, cron: string]> = [
  ['Every 5 minutes', '*/5 * * * *'],
  ['Hourly', '0 * * * *'],
  ['Weekdays at 9', '0 9 * * MON-FRI'],
  ['Nightly', '30 2 * * *'],
  ['Last day of the month', '0 18 L * *'],
];

export function WhenFields({ draft, onChange, error, errorAt }: WhenFieldsProps) {
  return (
    <Section title="When it fires">
      <SegmentedControl
        value={draft.whenKind}
        onChange={(kind) => onChange({ whenKind: kind as WhenKind })}
        data={KINDS}
        aria-label="Schedule type"
        w="fit-content"
      />
      <Expression draft={draft} onChange={onChange} error={error} errorAt={errorAt} />
      {draft.whenKind !== 'every' && (
        <Select
          label="Time zone"
          description="Fires follow the local time there, including daylight saving changes"
          data={ZONES}
          value={draft.tz}
          onChange={(tz) => onChange({ tz: tz ?? 'UTC' })}
          searchable
          limit={60}
          allowDeselect={false}
          error={errorAt('when.tz')}
          maw={360}
        />
      )}
    </Section>
  );
}

function Expression({ draft, onChange, error, errorAt }: WhenFieldsProps) {
  const mono = { input: { fontFamily: 'var(--mantine-font-family-monospace)' } };
  switch (draft.whenKind) {
    case 'cron':
      return (
        <div>
          <TextInput
            label="Cron expression"
            description="Minute, hour, day, month, weekday. With six fields, the first is seconds"
            value={draft.cron}
            onChange={(event) => onChange({ cron: event.currentTarget.value })}
            error={error}
            styles={mono}
            required
          />
          <Group gap={6} mt={8}>
            {EXAMPLES.map(([text, cron]) => (
              <Button key={cron} size="compact-xs" variant="default" onClick={() => onChange({ cron })}>
                {text}
              </Button>
            ))}
          </Group>
        </div>
      );
    case 'every':
      return (
        <Group align="flex-start">
          <TextInput
            label="Interval"
            description="e.g. 30s, 15m, 1h30m; without drift"
            value={draft.every}
            onChange={(event) => onChange({ every: event.currentTarget.value })}
            error={error}
            maw={240}
            required
          />
          <TextInput
            label="Counted from"
            description="An instant, e.g. 2030-01-01T09:00:00Z"
            placeholder="1970-01-01T00:00:00Z"
            value={draft.anchor}
            onChange={(event) => onChange({ anchor: event.currentTarget.value })}
            error={errorAt('when.anchor')}
            maw={300}
          />
        </Group>
      );
    case 'at':
      return (
        <TextInput
          type="datetime-local"
          step={1}
          label="Date and time"
          description={`Local time in ${draft.tz}`}
          value={draft.at}
          onChange={(event) => onChange({ at: event.currentTarget.value })}
          error={error}
          maw={280}
          required
        />
      );
    case 'rrule':
      return (
        <Textarea
          label="Recurrence rule"
          description="An iCalendar rule (RFC 5545)"
          value={draft.rrule}
          onChange={(event) => onChange({ rrule: event.currentTarget.value })}
          error={error}
          styles={mono}
          autosize
          minRows={2}
          required
        />
      );
  }
}
