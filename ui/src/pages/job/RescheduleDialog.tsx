import { Button, Group, Modal, NumberInput, Stack, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { call } from '../../api/call';
import type { Job } from '../../api/types';
import { fieldErrors } from '../../forms/fieldErrors';
import { FormProblem } from '../../forms/FormProblem';
import { showSuccess } from '../../parts/toasts';
import { instantOf, localInput } from '../../time/format';
import { useViewerZone } from '../../time/viewerZone';

export function RescheduleDialog({ job, onClose }: { job: Job; onClose: () => void }) {
  const zone = useViewerZone();
  const client = useQueryClient();
  const [at, setAt] = useState(() => localInput(Date.parse(job.due_at), zone));
  const [priority, setPriority] = useState<number | string>(job.priority);
  const timeChanged = at !== localInput(Date.parse(job.due_at), zone);
  const save = useMutation({
    mutationFn: () => {
      const instant = instantOf(at, zone);
      const body = {
        ...(timeChanged && { at: instant === null ? at : new Date(instant).toISOString() }),
        ...(priority !== job.priority && { priority: priority as number }),
      };
      return call('PATCH /jobs/{job_id}', { path: { job_id: job.id }, body });
    },
    onSuccess: () => {
      showSuccess('Job rescheduled');
      void client.invalidateQueries();
      onClose();
    },
  });
  const errorAt = fieldErrors(save.error);
  return (
    <Modal opened onClose={onClose} title="Reschedule" closeButtonProps={{ 'aria-label': 'Close' }}>
      <Stack>
        <TextInput
          type="datetime-local"
          step={1}
          label={`Due (${zone})`}
          value={at}
          onChange={(event) => setAt(event.currentTarget.value)}
          error={errorAt('at')}
          data-autofocus
        />
        <NumberInput
          label="Priority"
          description="0 to 9, 9 is the most urgent"
          min={0}
          max={9}
          allowDecimal={false}
          value={priority}
          onChange={setPriority}
          error={errorAt('priority')}
        />
        {save.error !== null && <FormProblem error={save.error} title="Not rescheduled" />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button
            onClick={() => save.mutate()}
            loading={save.isPending}
            disabled={!timeChanged && priority === job.priority}
          >
            Save
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
