import { Button, Group, Text } from '@mantine/core';
import { Icon } from '../../../parts/Icon';
import { serverNow } from '../../../time/clock';
import { clockTime, day } from '../../../time/format';
import { useViewerZone } from '../../../time/viewerZone';

/** Says that the list has only the posts of some hours. */
export function SpanNote({ from, to, onClear }: { from: string; to: string; onClear: () => void }) {
  const zone = useViewerZone();
  const [start, end] = [Date.parse(from), Date.parse(to)];
  if (Number.isNaN(start) || Number.isNaN(end)) return null;
  return (
    <Group gap="xs" mb="sm">
      <Text size="sm">
        Only {day(start, zone, serverNow())}, {clockTime(start, zone, false)} to {clockTime(end, zone, false)}
      </Text>
      <Button variant="subtle" size="compact-sm" leftSection={<Icon name="cross" />} onClick={onClear}>
        Show all
      </Button>
    </Group>
  );
}
