import { Group, NativeSelect, Text, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { call } from '../../api/call';
import type { AlertRow } from '../../api/types';
import { DialogForm } from '../../forms/DialogForm';
import { fieldErrors } from '../../forms/fieldErrors';
import { serverNow } from '../../time/clock';
import { parseDuration } from '../../time/duration';
import { Timestamp } from '../../time/Timestamp';
import { useViewerZone } from '../../time/viewerZone';
import { isoOf } from '../schedule/whenDraft';
import { CONDITIONS, conditionLabel, type ConditionName } from './conditions';

interface MuteDialogProps {
  /** The alert to snooze; without it a maintenance window. */
  alert?: AlertRow;
  onClose: () => void;
}

const ALL = { value: '', label: 'all conditions' };

export function MuteDialog({ alert, onClose }: MuteDialogProps) {
  const client = useQueryClient();
  const zone = useViewerZone();
  const [lapse, setLapse] = useState(alert ? '1h' : '2h');
  const [start, setStart] = useState('');
  const [condition, setCondition] = useState('');
  const [subject, setSubject] = useState('');
  const [note, setNote] = useState('');
  const startsAt = start === '' ? null : (isoOf(start, zone) ?? start);
  const common = { for: lapse.trim(), ...(note.trim() && { note: note.trim() }) };
  const create = useMutation({
    mutationFn: () =>
      alert
        ? call('POST /alerts/{alert_id}/snooze', { path: { alert_id: alert.id }, body: common })
        : call('POST /alerts/mutes', {
            body: {
              ...common,
              ...(startsAt && { start: startsAt }),
              ...(condition && { condition: condition as ConditionName }),
              ...(subject.trim() && { subject: subject.trim() }),
            },
          }),
    onSuccess: () => {
      onClose();
      return client.invalidateQueries({ queryKey: ['alerts'] });
    },
  });
  const errorAt = fieldErrors(create.error);
  return (
    <DialogForm
      title={alert ? `Snooze ${alert.subject}` : 'Maintenance window'}
      verb={alert ? 'Snooze' : startsAt ? 'Plan' : 'Begin'}
      error={create.error}
      isPending={create.isPending}
      onClose={onClose}
      onSubmit={() => create.mutate()}
    >
      <Text size="sm">
        {alert
          ? `Nothing is told about ${conditionLabel(alert.condition).toLowerCase()}: ${alert.subject}.`
          : 'Nothing is told in this time.'}{' '}
        What is still wrong at its end is told then.
      </Text>
      <Group grow align="flex-start">
        <TextInput
          label="For"
          description="e.g. 30m, 4h, 2d"
          value={lapse}
          onChange={(event) => setLapse(event.currentTarget.value)}
          error={errorAt('for')}
          required
          data-autofocus
        />
        {!alert && (
          <TextInput
            type="datetime-local"
            step={60}
            label={`Start (${zone})`}
            description="Empty: now"
            value={start}
            onChange={(event) => setStart(event.currentTarget.value)}
            error={errorAt('start')}
          />
        )}
      </Group>
      {!alert && (
        <Group grow align="flex-start">
          <NativeSelect
            label="Condition"
            description="What is not told"
            data={[ALL, ...Object.entries(CONDITIONS).map(([value, { label }]) => ({ value, label }))]}
            value={condition}
            onChange={(event) => setCondition(event.currentTarget.value)}
            error={errorAt('condition')}
          />
          <TextInput
            label="Subject"
            description="A schedule, queue or node; * is any text"
            placeholder="everything"
            value={subject}
            onChange={(event) => setSubject(event.currentTarget.value)}
            error={errorAt('subject')}
          />
        </Group>
      )}
      <TextInput
        label="Reason"
        description="Shown to other users"
        value={note}
        onChange={(event) => setNote(event.currentTarget.value)}
        error={errorAt('note')}
      />
      <End start={startsAt} lapse={lapse} />
    </DialogForm>
  );
}

/** When it ends, in the time zone of the viewer. */
function End({ start, lapse }: { start: string | null; lapse: string }) {
  const begins = start === null ? serverNow() : Date.parse(start);
  const end = begins + (parseDuration(lapse) ?? Number.NaN);
  const LATEST = 8.64e15; // of a JavaScript date
  if (!(Math.abs(end) < LATEST)) return null;
  return (
    <Text size="sm" c="dimmed" component="div">
      Ends at <Timestamp at={new Date(end).toISOString()} />
    </Text>
  );
}
