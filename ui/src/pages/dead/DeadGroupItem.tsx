import { Accordion, Button, Group, Stack, Text } from '@mantine/core';
import type { DeadGroup } from '../../api/types';
import { Icon } from '../../parts/Icon';
import { targetName } from '../../parts/targetName';
import { useMay } from '../../session/sessionContext';
import { Moment } from '../../time/Moment';
import type { DeadWanted } from './DeadBulk';
import classes from './DeadGroupItem.module.css';
import { DeadJobs } from './DeadJobs';

interface DeadGroupItemProps {
  group: DeadGroup;
  onBulk: (wanted: DeadWanted) => void;
}

export function DeadGroupItem({ group, onBulk }: DeadGroupItemProps) {
  const may = useMay('manage');
  const filter = { target: group.target, ...(group.error && { error: group.error }) };
  return (
    <Accordion.Item value={`${group.target} ${group.error}`}>
      <Accordion.Control>
        <div className={classes.head}>
          <span className={classes.count}>{group.count.toLocaleString('en')}</span>
          <div className={classes.about}>
            <Text fw={550} size="sm" truncate>
              {group.error || 'No error was told'}
            </Text>
            <Text size="xs" c="dimmed" component="div">
              <code>{targetName(group.target)}</code> · last <Moment at={group.newest} /> · first <Moment at={group.oldest} show="relative" />
            </Text>
          </div>
        </div>
      </Accordion.Control>
      <Accordion.Panel>
        <Stack gap="sm">
          <DeadJobs filter={filter} />
          <Group gap="xs">
            <Button size="xs" leftSection={<Icon name="retry" size={14} />} disabled={!may} onClick={() => onBulk({ action: 'retry', filter })}>
              Retry all {group.count.toLocaleString('en')}
            </Button>
            <Button size="xs" variant="default" c="var(--state-dead)" leftSection={<Icon name="trash" size={14} />} disabled={!may} onClick={() => onBulk({ action: 'discard', filter })}>
              Discard all
            </Button>
          </Group>
        </Stack>
      </Accordion.Panel>
    </Accordion.Item>
  );
}
