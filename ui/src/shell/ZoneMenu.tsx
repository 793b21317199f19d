import { Button, Popover, Select, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { useNow } from '../time/clock';
import { zoneName } from '../time/format';
import { BROWSER_ZONE, setViewerZone, useViewerZone, ZONES } from '../time/viewerZone';
import classes from './ZoneMenu.module.css';

/** Shows and changes the time zone of the viewer. */
export function ZoneMenu({ note }: { note: string }) {
  const zone = useViewerZone();
  const now = useNow();
  const [opened, setOpened] = useState(false);
  const choose = (next: string | null) => {
    if (next) setViewerZone(next);
    setOpened(false);
  };
  return (
    <Popover opened={opened} onChange={setOpened} width={280} position="bottom-end" shadow="md" trapFocus>
      <Popover.Target>
        <Button
          className={classes.root}
          variant="subtle"
          color="gray"
          size="compact-sm"
          h={32}
          onClick={() => setOpened(!opened)}
          aria-label={`${zoneName(now, zone)}: times are shown in ${zone}`}
        >
          {zoneName(now, zone)}
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <Stack gap="xs">
          <Text size="sm">{note}</Text>
          <Select
            label="Time zone"
            data={ZONES}
            value={zone}
            onChange={choose}
            searchable
            openOnFocus={false}
            limit={50}
            comboboxProps={{ withinPortal: false }}
          />
          <Button.Group>
            <Button fullWidth variant="default" size="xs" onClick={() => choose(BROWSER_ZONE)}>
              Browser
            </Button>
            <Button fullWidth variant="default" size="xs" onClick={() => choose('UTC')}>
              UTC
            </Button>
          </Button.Group>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
