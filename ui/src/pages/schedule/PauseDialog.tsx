import { Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core';
import { useState, type SubmitEvent } from 'react';

interface PauseDialogProps {
  title: string;
  onClose: () => void;
  onPause: (note: string) => void;
}

/** A pause without a reason puzzles whoever comes next. */
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
          <Text size="sm">Nothing starts until it is resumed. What runs already goes on.</Text>
          <TextInput label="Why" description="Shown to whoever wonders" placeholder="database moves house" value={note} onChange={(event) => setNote(event.currentTarget.value)} data-autofocus />
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
