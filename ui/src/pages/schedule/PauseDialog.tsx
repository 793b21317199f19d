import { Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core';
import { useState, type SubmitEvent } from 'react';

interface PauseDialogProps {
  title: string;
  onClose: () => void;
  onPause: (note: string) => void;
}

/** Asks for the reason of a pause, so that others can see it. */
export function PauseDialog({ title, onClose, onPause }: PauseDialogProps) {
  const [note, setNote] = useState('');
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    onClose();
    onPause(note.trim());
  };
  return (
    <Modal opened onClose={onClose} title={title} closeButtonProps={{ 'aria-label': 'Close' }}>
      <form onSubmit={submit}>
        <Stack>
          <Text size="sm">No jobs start until you resume. Running jobs continue.</Text>
          <TextInput
            label="Reason"
            description="Shown to other users"
            placeholder="e.g. database migration"
            value={note}
            onChange={(event) => setNote(event.currentTarget.value)}
            data-autofocus
          />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit">Pause</Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
