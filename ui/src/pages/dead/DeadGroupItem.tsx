import { Accordion, Button, Group, Stack, Text } from '@mantine/core';
import type { DeadGroup } from '../../api/types';
import { Icon } from '../../parts/Icon';
import { targetName } from '../../parts/targetName';
import { useHasScope } from '../../session/sessionContext';
import { Timestamp } from '../../time/Timestamp';
import type { DeadAction, DeadFilter } from './DeadBulk';
import classes from './DeadGroupItem.module.css';
import { DeadJobs } from './DeadJobs';

interface DeadGroupItemProps {
  group: DeadGroup;
  /** The filter of the page. */
  search: DeadFilter;
  onBulk: (action: DeadAction) => void;
}

export function DeadGroupItem({ group, search, onBulk }: DeadGroupItemProps) {
  const canManage = useHasScope('manage');
  const filter = { ...search, target: group.target, error_group: group.error };
  return (
    <Accordion.Item value={`${group.target} ${group.error}`}>
      <Accordion.Control>
        <div className={classes.head}>
          <span className={classes.count}>{group.count.toLocaleString('en')}</span>
          <div className={classes.about}>
            <Text fw={550} size="sm" lineClamp={2}>
              {group.error || 'No error message'}
            </Text>
            <Text size="xs" c="dimmed" component="div">
              <code>{targetName(group.target)}</code> · last <Timestamp at={group.newest} /> · first{' '}
              <Timestamp at={group.oldest} show="relative" />
            </Text>
          </div>
        </div>
      </Accordion.Control>
      <Accordion.Panel>
        <Stack gap="sm">
          <DeadJobs filter={filter} onBulk={onBulk} />
          <Group gap="xs">
            <Button
              size="xs"
              leftSection={<Icon name="retry" size={14} />}
              disabled={!canManage}
              onClick={() => onBulk({ action: 'retry', filter })}
            >
              Retry all {group.count.toLocaleString('en')}
            </Button>
            <Button
              size="xs"
              variant="default"
              c="var(--state-dead)"
              leftSection={<Icon name="trash" size={14} />}
              disabled={!canManage}
              onClick={() => onBulk({ action: 'discard', filter })}
            >
              Discard all
            </Button>
          </Group>
        </Stack>
      </Accordion.Panel>
    </Accordion.Item>
  );
}
