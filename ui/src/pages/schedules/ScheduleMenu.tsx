import { Menu } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import type { Schedule } from '../../api/types';
import { Icon } from '../../parts/Icon';
import { useHasScope } from '../../session/sessionContext';
import { useScheduleActions } from '../schedule/useScheduleActions';
import classes from './ScheduleMenu.module.css';

/** The menu is rendered only when it is opened, because a table has one per row. */
export function ScheduleMenu({ schedule }: { schedule: Schedule }) {
  const [opened, setOpened] = useState(false);
  const button = (
    <button
      type="button"
      className={classes.button}
      aria-label={`Actions for ${schedule.name}`}
      aria-haspopup="menu"
      onClick={() => setOpened(true)}
    >
      <Icon name="more" />
    </button>
  );
  if (!opened) return button;
  return (
    <Menu opened onChange={setOpened} position="bottom-end" withinPortal>
      <Menu.Target>{button}</Menu.Target>
      <Menu.Dropdown>
        <Entries schedule={schedule} />
      </Menu.Dropdown>
    </Menu>
  );
}

function Entries({ schedule }: { schedule: Schedule }) {
  const canManage = useHasScope('manage');
  const actions = useScheduleActions(schedule);
  return (
    <>
      <Menu.Item leftSection={<Icon name="bolt" />} disabled={!canManage} onClick={actions.trigger}>
        Run now
      </Menu.Item>
      <Menu.Item
        leftSection={<Icon name={schedule.paused ? 'play' : 'pause'} />}
        disabled={!canManage}
        onClick={schedule.paused ? actions.resume : actions.pauseWithoutNote}
      >
        {schedule.paused ? 'Resume' : 'Pause'}
      </Menu.Item>
      <Menu.Item
        leftSection={<Icon name="edit" />}
        component={Link}
        href={`/schedules/${schedule.id}?tab=edit`}
      >
        Edit
      </Menu.Item>
      <Menu.Item
        leftSection={<Icon name="job" />}
        component={Link}
        href={`/jobs?schedule=${encodeURIComponent(schedule.name)}`}
      >
        Jobs
      </Menu.Item>
    </>
  );
}
