import { Alert, Button, Group, Modal, Skeleton, Stack, Text } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { call } from '../../api/call';
import type { Plan, Schedule, SchedulePatch } from '../../api/types';
import { Icon } from '../../parts/Icon';
import { ProblemNote } from '../../parts/ProblemNote';
import { DiffTable } from './DiffTable';
import { PlannedFires } from './PlannedFires';

interface PlanDialogProps {
  schedule: Schedule;
  version: number;
  patch: SchedulePatch;
  onClose: () => void;
  onSaved: () => void;
  onFailed: (error: unknown) => void;
}

const HORIZON = '7d';

/** Previews the effect of an edit before it is saved. */
export function PlanDialog({ schedule, version, patch, onClose, onSaved, onFailed }: PlanDialogProps) {
  const path = { schedule_id: schedule.id };
  const plan = useQuery({
    queryKey: ['plan', schedule.id, patch],
    queryFn: ({ signal }) =>
      call('POST /schedules/{schedule_id}/plan', {
        path,
        query: { horizon: HORIZON, count: 20 },
        body: patch,
        signal,
      }),
    retry: false,
  });
  const save = useMutation({
    mutationFn: () => call('PATCH /schedules/{schedule_id}', { path, body: patch, ifMatch: version }),
    onSuccess: onSaved,
    onError: onFailed,
  });
  return (
    <Modal
      opened
      onClose={onClose}
      title={`Changes to ${schedule.name}`}
      size="xl"
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <Stack>
        {plan.error !== null && <ProblemNote error={plan.error} title="Could not save these changes" />}
        {plan.isPending && <Skeleton height={200} />}
        {plan.data && <PlanView plan={plan.data} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Back to editing
          </Button>
          <Button
            onClick={() => save.mutate()}
            loading={save.isPending}
            disabled={plan.data === undefined}
            data-autofocus
          >
            Save
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

function PlanView({ plan }: { plan: Plan }) {
  return (
    <>
      <DiffTable diff={plan.diff} />
      {plan.words.before !== plan.words.after && (
        <Text size="sm">
          Before: {plan.words.before}. After: <strong>{plan.words.after}</strong>.
        </Text>
      )}
      {plan.warnings.map((warning) => (
        <Alert key={warning} color="yellow" icon={<Icon name="warning" />} p="xs">
          {warning}
        </Alert>
      ))}
      <PlannedFires plan={plan} />
    </>
  );
}
