import { NumberInput, Text, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { call } from '../../api/call';
import type { Queue } from '../../api/types';
import { DialogForm } from '../../forms/DialogForm';
import { fieldErrors } from '../../forms/fieldErrors';
import { showSuccess } from '../../parts/toasts';

export function LimitDialog({ queue, onClose }: { queue: Queue; onClose: () => void }) {
  const client = useQueryClient();
  const [maxRunning, setMaxRunning] = useState<number | string>(queue.max_running ?? '');
  const [rate, setRate] = useState(queue.rate ?? '');
  const save = useMutation({
    mutationFn: () =>
      call('POST /queues/{name}/limit', {
        path: { name: queue.name },
        body: { max_running: maxRunning === '' ? null : Number(maxRunning), rate: rate.trim() || null },
      }),
    onSuccess: () => {
      showSuccess(`Limits of queue ${queue.name} saved`);
      onClose();
      return client.invalidateQueries();
    },
  });
  const errorAt = fieldErrors(save.error);
  return (
    <DialogForm
      title={`Limits of queue ${queue.name}`}
      verb="Save limits"
      error={save.error}
      isPending={save.isPending}
      onClose={onClose}
      onSubmit={() => save.mutate()}
    >
      <Text size="sm">Limits apply to all nodes together. An empty field is no limit.</Text>
      <NumberInput
        label="Max running"
        description="Jobs that run at the same time"
        placeholder="no limit"
        min={1}
        allowDecimal={false}
        value={maxRunning}
        onChange={setMaxRunning}
        error={errorAt('max_running')}
        data-autofocus
      />
      <TextInput
        label="Rate"
        description="Starts in a period, e.g. 100/1m"
        placeholder="no limit"
        value={rate}
        onChange={(event) => setRate(event.currentTarget.value)}
        error={errorAt('rate')}
      />
    </DialogForm>
  );
}
