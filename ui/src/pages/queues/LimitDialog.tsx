import { Button, Group, Modal, NumberInput, Stack, Text, TextInput } from '@mantine/core';
import { useState, type SubmitEvent } from 'react';
import type { Body } from '../../api/call';
import type { Queue } from '../../api/types';

interface LimitDialogProps {
  queue: Queue;
  onClose: () => void;
  onSave: (limit: Body<'POST /queues/{name}/limit'>) => void;
}

export function LimitDialog({ queue, onClose, onSave }: LimitDialogProps) {
  const [maxRunning, setMaxRunning] = useState<number | string>(queue.max_running ?? '');
  const [rate, setRate] = useState(queue.rate ?? '');
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    onClose();
    onSave({ max_running: maxRunning === '' ? null : Number(maxRunning), rate: rate.trim() || null });
  };
  return (
    <Modal
      opened
      onClose={onClose}
      title={`Limits of queue ${queue.name}`}
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <form onSubmit={submit}>
        <Stack>
          <Text size="sm">Limits apply to all nodes together. An empty field is no limit.</Text>
          <NumberInput
            label="Max running"
            description="Jobs that run at the same time"
            placeholder="no limit"
            min={1}
            allowDecimal={false}
            value={maxRunning}
            onChange={setMaxRunning}
            data-autofocus
          />
          <TextInput
            label="Rate"
            description="Starts in a period, e.g. 100/1m"
            placeholder="no limit"
            value={rate}
            onChange={(event) => setRate(event.currentTarget.value)}
          />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Close
            </Button>
            <Button type="submit">Save limits</Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
