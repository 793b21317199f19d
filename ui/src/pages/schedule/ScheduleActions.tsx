import { Button, Group, Menu, ActionIcon } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import type { Schedule } from '../../api/types';
import { ConfirmDialog } from '../../parts/ConfirmDialog';
import { Icon } from '../../parts/Icon';
import { useHasScope } from '../../session/sessionContext';
import { BackfillDialog } from './BackfillDialog';
import { PauseDialog } from './PauseDialog';
import { useScheduleActions } from './useScheduleActions';

export function ScheduleActions({ schedule }: { schedule: Schedule }) {
  const canManage = useHasScope('manage');
  const actions = useScheduleActions(schedule);
  const [pausing, pause] = useDisclosure(false);
  const [removing, remove] = useDisclosure(false);
  const [backfilling, backfill] = useDisclosure(false);
  return (
    <Group gap="xs">
      {schedule.paused ? (
        <Button
          variant="default"
          leftSection={<Icon name="play" />}
          disabled={!canManage}
          onClick={actions.resume}
        >
          Resume
        </Button>
      ) : (
        <Button
          variant="default"
          leftSection={<Icon name="pause" />}
          disabled={!canManage}
          onClick={pause.open}
        >
          Pause
        </Button>
      )}
      <Button leftSection={<Icon name="bolt" />} disabled={!canManage} onClick={actions.trigger}>
        Run now
      </Button>
      <Menu position="bottom-end">
        <Menu.Target>
          <ActionIcon size={36} variant="default" aria-label="More actions">
            <Icon name="more" />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item leftSection={<Icon name="history" />} disabled={!canManage} onClick={backfill.open}>
            Backfill past fires
          </Menu.Item>
          <Menu.Item
            leftSection={<Icon name="trash" />}
            color="red"
            disabled={!canManage}
            onClick={remove.open}
          >
            Delete
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {pausing && (
        <PauseDialog
          subject={schedule.name}
          title={`Pause ${schedule.name}`}
          onClose={pause.close}
          onPause={actions.pause}
        />
      )}
      {backfilling && <BackfillDialog schedule={schedule} onClose={backfill.close} />}
      {removing && (
        <ConfirmDialog
          title={`Delete ${schedule.name}`}
          verb="Delete"
          onClose={remove.close}
          onConfirm={actions.remove}
        >
          The schedule stops firing and its pending jobs are removed. Past jobs are kept.
        </ConfirmDialog>
      )}
    </Group>
  );
}
