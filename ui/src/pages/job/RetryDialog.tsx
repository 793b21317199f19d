import { Button, Group, Modal, Stack, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useCallback } from 'react';
import { useLocation } from 'wouter';
import { call } from '../../api/call';
import { useIdempotencyKeys } from '../../api/useIdempotencyKeys';
import type { Job } from '../../api/types';
import { fieldErrors, fieldProblem } from '../../forms/fieldErrors';
import { FormProblem } from '../../forms/FormProblem';
import { useDraft } from '../../forms/useDraft';
import { JsonInput } from '../../parts/JsonInput';
import { readJson, showJson } from '../../parts/json';
import { showSuccess } from '../../parts/toasts';

/** Retries a dead letter or a skipped job, with the same payload or a changed one. */
export function RetryDialog({ job, onClose }: { job: Job; onClose: () => void }) {
  const original = showJson(job.payload);
  const make = useCallback(() => ({ payload: original }), [original]);
  const { draft, change, discard } = useDraft(`retry:${job.id}`, make);
  const [, navigate] = useLocation();
  const client = useQueryClient();
  const keyFor = useIdempotencyKeys();
  const { value, problem } = readJson(draft.payload);
  const changed = draft.payload !== original;
  const retry = useMutation({
    mutationFn: async () => {
      if (problem !== null) throw fieldProblem('payload', problem);
      const body = changed ? { payload: (value ?? {}) as Record<string, unknown> } : {};
      return await call('POST /jobs/{job_id}/retry', {
        path: { job_id: job.id },
        body,
        idempotencyKey: keyFor(body),
      });
    },
    onSuccess: (newJob) => {
      discard();
      showSuccess('Retried as a new job');
      void client.invalidateQueries();
      onClose();
      navigate(`/jobs/${newJob.id}`);
    },
  });
  return (
    <Modal opened onClose={onClose} title="Retry" size="lg" closeButtonProps={{ 'aria-label': 'Close' }}>
      <Stack>
        <Text size="sm">
          A new job runs the same target with this payload. The old job is marked as retried.
        </Text>
        <JsonInput
          label="Payload (JSON)"
          value={draft.payload}
          onChange={(payload) => change({ payload })}
          error={fieldErrors(retry.error)('payload') ?? null}
          rows={8}
        />
        {retry.error !== null && <FormProblem error={retry.error} title="Not retried" />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button onClick={() => retry.mutate()} loading={retry.isPending}>
            {changed ? 'Retry with this payload' : 'Retry'}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
