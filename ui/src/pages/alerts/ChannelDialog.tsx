import { NativeSelect, Switch, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import { call } from '../../api/call';
import type { AlertChannel } from '../../api/types';
import { bodyOfChannel, draftOfChannel, EMPTY_CHANNEL, type ChannelDraft } from './channelDraft';
import { ChannelInput } from './ChannelInput';
import { CHANNEL_KINDS, CHANNEL_TYPES, type ChannelType } from './channelKinds';
import { QuietTimes } from './QuietTimes';
import { SaveForm } from './SaveForm';
import { useSave } from './useSave';

interface ChannelDialogProps {
  /** The channel to edit; without it a new one. */
  channel?: AlertChannel;
  names: readonly string[];
  onClose: () => void;
}

const without = (names: readonly string[], removed: string) => names.filter((name) => name !== removed);

export function ChannelDialog({ channel, names, onClose }: ChannelDialogProps) {
  const [draft, setDraft] = useState<ChannelDraft>(() => (channel ? draftOfChannel(channel) : EMPTY_CHANNEL));
  const change = (next: Partial<ChannelDraft>) => setDraft((known) => ({ ...known, ...next }));
  const name = draft.name.trim();
  const { label, help, fields } = CHANNEL_KINDS[draft.type];
  const save = useSave({
    noun: 'channel',
    name,
    isTaken: !channel && names.includes(name),
    send: () =>
      call('PUT /alerts/channels/{channel}', {
        path: { channel: name },
        body: bodyOfChannel(draft),
        ifMatch: channel?.version ?? 0,
      }),
    onSaved: onClose,
  });
  const { errorAt } = save;
  return (
    <SaveForm noun="channel" edited={channel} save={save} onClose={onClose}>
      {channel ? (
        <Text size="sm">
          {label}: {help}
        </Text>
      ) : (
        <>
          <TextInput
            label="Name"
            placeholder="ops"
            value={draft.name}
            onChange={(event) => change({ name: event.currentTarget.value })}
            error={errorAt('name') ?? errorAt('channel')}
            required
            data-autofocus
          />
          <NativeSelect
            label="Type"
            description={help}
            inputWrapperOrder={['label', 'input', 'description', 'error']}
            data={CHANNEL_TYPES.map((value) => ({ value, label: CHANNEL_KINDS[value].label }))}
            value={draft.type}
            onChange={(event) => change({ type: event.currentTarget.value as ChannelType, values: {} })}
            error={errorAt('type') ?? errorAt('target.type')}
          />
        </>
      )}
      {fields.map((field) => (
        <ChannelInput
          key={field.name}
          field={field}
          isStored={channel?.secrets.includes(field.name) ?? false}
          value={draft.values[field.name] ?? ''}
          onChange={(text) => change({ values: { ...draft.values, [field.name]: text } })}
          isRemoved={draft.removed.includes(field.name)}
          onRemove={(isRemoved) =>
            change({
              values: { ...draft.values, [field.name]: '' },
              removed: isRemoved ? [...draft.removed, field.name] : without(draft.removed, field.name),
            })
          }
          error={errorAt(field.name)}
        />
      ))}
      <QuietTimes times={draft.quiet} onChange={(quiet) => change({ quiet })} errorAt={errorAt} />
      <Switch
        label="On"
        description="A channel that is off is told nothing"
        checked={draft.enabled}
        onChange={(event) => change({ enabled: event.currentTarget.checked })}
      />
    </SaveForm>
  );
}
