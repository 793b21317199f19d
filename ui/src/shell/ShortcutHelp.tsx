import { Group, Kbd, Modal, Stack, Text } from '@mantine/core';
import { PLACES } from './places';

const KEYS: ReadonlyArray<[keys: string[], what: string]> = [
  [['Ctrl', 'K'], 'Search and commands'],
  [['/'], 'Search in this page'],
  [['c'], 'Create a schedule'],
  [['x'], 'Submit a job'],
  [['Shift', 'P'], 'Pause and resume live updates'],
  ...PLACES.map((place): [string[], string] => [['g', place.shortcut], `Go to ${place.label}`]),
  [['?'], 'This list'],
];

export function ShortcutHelp({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  return (
    <Modal opened={opened} onClose={onClose} title="Keyboard shortcuts" closeButtonProps={{ 'aria-label': 'Close' }}>
      <Stack gap={6}>
        {KEYS.map(([keys, what]) => (
          <Group key={what} justify="space-between">
            <Text size="sm">{what}</Text>
            <Group gap={4}>
              {keys.map((key) => (
                <Kbd key={key}>{key}</Kbd>
              ))}
            </Group>
          </Group>
        ))}
      </Stack>
    </Modal>
  );
}
