import { Group, Kbd, Modal, Stack, Text } from '@mantine/core';
import { PAGES } from './routes';

const KEYS: ReadonlyArray<[keys: string[], description: string]> = [
  [['Ctrl', 'K'], 'Search and commands'],
  [['/'], 'Search on this page'],
  [['c'], 'Create a schedule'],
  [['x'], 'Submit a job'],
  [['Shift', 'P'], 'Pause or resume live updates'],
  ...PAGES.map((page): [string[], string] => [['g', page.shortcut], `Go to ${page.label}`]),
  [['?'], 'Show this list'],
];

export function ShortcutHelp({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title="Keyboard shortcuts"
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <Stack gap={6}>
        {KEYS.map(([keys, description]) => (
          <Group key={description} justify="space-between">
            <Text size="sm">{description}</Text>
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
