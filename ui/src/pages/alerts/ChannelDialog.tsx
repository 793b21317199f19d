import { Button, Group, Modal, NativeSelect, PasswordInput, Stack, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { call, type Body } from '../../api/call';
import { fieldErrors } from '../../forms/fieldErrors';
import { ProblemNote } from '../../parts/ProblemNote';

type Receiver = Body<'PUT /alerts/channels/{channel}'>['target'];
type Field = readonly [name: string, label: string, kind?: 'secret' | 'optional'];

const FIELDS: Record<string, readonly Field[]> = {
  webhook: [
    ['url', 'URL'],
    ['signing_secret', 'Signing secret', 'secret'],
  ],
  slack: [['url', 'Webhook URL', 'secret']],
  pagerduty: [['routing_key', 'Integration key', 'secret']],
  alertmanager: [
    ['url', 'URL'],
    ['authorization', 'Authorization header', 'secret'],
  ],
  email: [
    ['host', 'SMTP host'],
    ['port', 'Port', 'optional'],
    ['sender', 'From'],
    ['to', 'To, separated by commas'],
    ['username', 'User name', 'optional'],
    ['password', 'Password', 'secret'],
  ],
};

export function ChannelDialog({ onClose }: { onClose: () => void }) {
  const client = useQueryClient();
  const [name, setName] = useState('');
  const [type, setType] = useState('webhook');
  const [values, setValues] = useState<Record<string, string>>({});
  const fields = FIELDS[type] ?? [];
  const create = useMutation({
    mutationFn: () =>
      call('PUT /alerts/channels/{channel}', {
        path: { channel: name.trim() },
        body: { target: receiver(type, fields, values) },
      }),
    onSuccess: () => {
      onClose();
      return client.invalidateQueries({ queryKey: ['alerts'] });
    },
  });
  const errorAt = fieldErrors(create.error);
  return (
    <Modal opened onClose={onClose} title="New channel" closeButtonProps={{ 'aria-label': 'Close' }}>
      <Stack>
        <TextInput
          label="Name"
          placeholder="ops"
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          error={errorAt('name')}
          required
          data-autofocus
        />
        <NativeSelect
          label="Type"
          data={Object.keys(FIELDS)}
          value={type}
          onChange={(event) => setType(event.currentTarget.value)}
        />
        {fields.map(([field, label, kind]) => {
          const Input = kind === 'secret' ? PasswordInput : TextInput;
          return (
            <Input
              key={field}
              label={label}
              value={values[field] ?? ''}
              onChange={(event) => {
                const text = event.currentTarget.value;
                setValues((known) => ({ ...known, [field]: text }));
              }}
              error={errorAt(field)}
            />
          );
        })}
        {create.error !== null && <ProblemNote error={create.error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button onClick={() => create.mutate()} loading={create.isPending} disabled={!name.trim()}>
            Create channel
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

function receiver(type: string, fields: readonly Field[], values: Record<string, string>): Receiver {
  const given = fields.flatMap(([field]) => {
    const text = values[field]?.trim();
    return text ? [[field, valueOf(field, text)] as const] : [];
  });
  return { type, ...Object.fromEntries(given) } as Receiver;
}

function valueOf(field: string, text: string): string | number | string[] {
  if (field === 'port') return Number(text);
  return field === 'to' ? text.split(',').map((address) => address.trim()) : text;
}
