import { Alert, Button, Checkbox, Group, Modal, Stack, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { call, type Body } from '../../api/call';
import { fieldErrors, fieldProblem } from '../../forms/fieldErrors';
import { FormProblem } from '../../forms/FormProblem';
import { CopyText } from '../../parts/CopyText';

type Scope = Body<'POST /keys'>['scopes'][number];

const SCOPES: ReadonlyArray<[Scope, string]> = [
  ['read', 'Read: view jobs, schedules, queues and nodes'],
  ['submit', 'Submit: submit jobs'],
  ['manage', 'Manage: create and edit schedules, cancel, retry, pause'],
  ['admin', 'Admin: everything, including keys'],
  ['work', 'Work: claim and report jobs as a remote worker, nothing else'],
];

export function NewKeyDialog({ onClose }: { onClose: () => void }) {
  const client = useQueryClient();
  const [name, setName] = useState('');
  const [scopes, setScopes] = useState<string[]>(['read']);
  const [expiresIn, setExpiresIn] = useState('90d');
  const [rate, setRate] = useState('');
  const [queues, setQueues] = useState('');
  const create = useMutation({
    mutationFn: async () => {
      if (!name.trim()) throw fieldProblem('name', 'Enter a name');
      if (scopes.length === 0) throw fieldProblem('scopes', 'Choose at least one scope');
      return await call('POST /keys', {
        body: {
          name: name.trim(),
          scopes: scopes as Scope[],
          ...(expiresIn.trim() && { expires_in: expiresIn.trim() }),
          ...(rate.trim() && { rate: rate.trim() }),
          ...(scopes.includes('work') && {
            queues: queues.split(',').flatMap((queue) => queue.trim() || []),
          }),
        },
      });
    },
    onSuccess: () => void client.invalidateQueries({ queryKey: ['keys'] }),
  });
  const errorAt = fieldErrors(create.error);
  return (
    <Modal
      opened
      onClose={onClose}
      title="New key"
      closeButtonProps={{ 'aria-label': 'Close' }}
      closeOnClickOutside={!create.data}
      size="lg"
    >
      {create.data ? (
        <Stack>
          <Alert title="Copy it now">The key is shown only once. The server stores only a hash of it.</Alert>
          <CopyText text={create.data.key} label="Copy key" />
          <Button onClick={onClose} w="fit-content">
            I have copied it
          </Button>
        </Stack>
      ) : (
        <Stack>
          <TextInput
            label="Name"
            description="The user or program that uses the key"
            placeholder="ci"
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
            error={errorAt('name')}
            required
            data-autofocus
          />
          <Checkbox.Group
            label="Scopes"
            value={scopes}
            onChange={setScopes}
            error={errorAt('scopes')}
            data-error-group={errorAt('scopes') !== undefined}
            tabIndex={-1}
          >
            <Stack gap={6} mt={6}>
              {SCOPES.map(([scope, label]) => (
                <Checkbox key={scope} value={scope} label={label} />
              ))}
            </Stack>
          </Checkbox.Group>
          {scopes.includes('work') && (
            <TextInput
              label="Queues"
              description="That it may work on, e.g. mail, billing; empty: all"
              value={queues}
              onChange={(event) => setQueues(event.currentTarget.value)}
              error={errorAt('queues')}
            />
          )}
          <Group grow align="flex-start">
            <TextInput
              label="Expires after"
              description="e.g. 90d; empty: never"
              value={expiresIn}
              onChange={(event) => setExpiresIn(event.currentTarget.value)}
              error={errorAt('expires_in')}
            />
            <TextInput
              label="Rate limit"
              description="e.g. 100/1s; empty: the default"
              value={rate}
              onChange={(event) => setRate(event.currentTarget.value)}
              error={errorAt('rate')}
            />
          </Group>
          {create.error !== null && <FormProblem error={create.error} title="No key was created" />}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button onClick={() => create.mutate()} loading={create.isPending}>
              Create key
            </Button>
          </Group>
        </Stack>
      )}
    </Modal>
  );
}
