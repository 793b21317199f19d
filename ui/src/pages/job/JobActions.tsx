import { Button, Group } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import type { Job } from '../../api/types';
import { Icon } from '../../parts/Icon';
import { useMay } from '../../session/sessionContext';
import { RescheduleDialog } from './RescheduleDialog';
import { RetryDialog } from './RetryDialog';
import { useJobActions } from './useJobActions';

export function JobActions({ job }: { job: Job }) {
  const may = useMay('manage');
  const actions = useJobActions(job);
  const [moving, move] = useDisclosure(false);
  const [retrying, retry] = useDisclosure(false);
  const waits = job.state === 'pending' || job.state === 'queued';
  const open = waits || job.state === 'running';
  return (
    <Group gap="xs">
      {waits && (
        <>
          <Button variant="default" leftSection={<Icon name="calendar" />} disabled={!may} onClick={move.open}>
            Reschedule
          </Button>
          <Button variant="default" leftSection={<Icon name="bolt" />} disabled={!may} onClick={actions.run}>
            Run now
          </Button>
        </>
      )}
      {open && (
        <Button variant="default" c="var(--state-dead)" leftSection={<Icon name="cross" />} disabled={!may || job.cancel_requested} onClick={actions.cancel}>
          {job.cancel_requested ? 'Cancelling' : 'Cancel'}
        </Button>
      )}
      {job.state === 'dead' && (
        <>
          <Button variant="default" c="var(--state-dead)" leftSection={<Icon name="trash" />} disabled={!may || job.disposition !== null} onClick={actions.discard}>
            Discard
          </Button>
          <Button leftSection={<Icon name="retry" />} disabled={!may || job.disposition !== null} onClick={retry.open}>
            Retry
          </Button>
        </>
      )}
      {moving && <RescheduleDialog job={job} onClose={move.close} />}
      {retrying && <RetryDialog job={job} onClose={retry.close} />}
    </Group>
  );
}
