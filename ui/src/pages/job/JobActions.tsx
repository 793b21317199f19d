import { Button, Group } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import type { Job } from '../../api/types';
import { ReasonDialog } from '../../forms/ReasonDialog';
import { Icon } from '../../parts/Icon';
import { useHasScope } from '../../session/sessionContext';
import { RescheduleDialog } from './RescheduleDialog';
import { RetryDialog } from './RetryDialog';
import { useJobActions } from './useJobActions';

export function JobActions({ job }: { job: Job }) {
  const canManage = useHasScope('manage');
  const actions = useJobActions(job);
  const [rescheduling, reschedule] = useDisclosure(false);
  const [retrying, retry] = useDisclosure(false);
  const [cancelling, cancel] = useDisclosure(false);
  const isPending = job.state === 'pending';
  const isActive = isPending || job.state === 'running';
  return (
    <Group gap="xs">
      {isPending && (
        <>
          <Button
            variant="default"
            leftSection={<Icon name="calendar" />}
            disabled={!canManage}
            onClick={reschedule.open}
          >
            Reschedule
          </Button>
          <Button
            variant="default"
            leftSection={<Icon name="bolt" />}
            disabled={!canManage}
            onClick={actions.run}
          >
            Run now
          </Button>
        </>
      )}
      {isActive && (
        <Button
          variant="default"
          c="var(--state-dead)"
          leftSection={<Icon name="cross" />}
          disabled={!canManage || job.cancel_requested}
          onClick={cancel.open}
        >
          {job.cancel_requested ? 'Cancelling' : 'Cancel'}
        </Button>
      )}
      {job.state === 'dead' && (
        <Button
          variant="default"
          c="var(--state-dead)"
          leftSection={<Icon name="trash" />}
          disabled={!canManage || job.disposition !== null}
          onClick={actions.discard}
        >
          Discard
        </Button>
      )}
      {(job.state === 'dead' || job.state === 'skipped') && (
        <Button
          leftSection={<Icon name="retry" />}
          disabled={!canManage || job.disposition !== null}
          onClick={retry.open}
        >
          Retry
        </Button>
      )}
      {rescheduling && <RescheduleDialog job={job} onClose={reschedule.close} />}
      {cancelling && (
        <ReasonDialog
          title="Cancel the job"
          verb="Cancel job"
          placeholder="e.g. wrong month"
          field="reason"
          message={isPending ? 'Job cancelled' : 'Cancellation requested'}
          danger
          onClose={cancel.close}
          onConfirm={actions.cancel}
        >
          {isPending
            ? 'The job will not start.'
            : 'The job is running. Its worker is asked to stop it; work that is already done is not undone.'}
        </ReasonDialog>
      )}
      {retrying && <RetryDialog job={job} onClose={retry.close} />}
    </Group>
  );
}
