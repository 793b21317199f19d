import { Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { call } from '../../api/call';
import { fieldErrors } from '../../forms/fieldErrors';
import { ProblemNote } from '../../parts/ProblemNote';

export function MuteDialog({ onClose }: { onClose: () => void }) {
  const client = useQueryClient();
  const [lapse, setLapse] = useState('2h');
  const [subject, setSubject] = useState('');
  const [note, setNote] = useState('');
  const create = useMutation({
    mutationFn: () =>
      call('POST /alerts/mutes', {
        body: {
          for: lapse.trim(),
          ...(subject.trim() && { subject: subject.trim() }),
          ...(note.trim() && { note: note.trim() }),
        },
      }),
    onSuccess: () => {
      onClose();
      return client.invalidateQueries({ queryKey: ['alerts'] });
    },
  });
  const errorAt = fieldErrors(create.error);
  return (
    <Modal opened onClose={onClose} title="Maintenance window" closeButtonProps={{ 'aria-label': 'Close' }}>
      <Stack>
        <Text size="sm">Nothing is told in this time. What is still wrong at its end is told then.</Text>
        <TextInput
          label="For"
          description="e.g. 2h, beginning now"
          value={lapse}
          onChange={(event) => setLapse(event.currentTarget.value)}
          error={errorAt('for')}
          data-autofocus
        />
        <TextInput
          label="Subject"
          description="A schedule, queue or node; * matches any text; empty: everything"
          placeholder="report-*"
          value={subject}
          onChange={(event) => setSubject(event.currentTarget.value)}
          error={errorAt('subject')}
        />
        <TextInput label="Reason" value={note} onChange={(event) => setNote(event.currentTarget.value)} />
        {create.error !== null && <ProblemNote error={create.error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button onClick={() => create.mutate()} loading={create.isPending} disabled={!lapse.trim()}>
            Begin
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
