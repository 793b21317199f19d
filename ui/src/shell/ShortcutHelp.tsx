import { Group, Kbd, Modal, Stack, Text } from '@mantine/core';

export type ShortcutKeys = ReadonlyArray<[keys: string[], description: string]>;

interface ShortcutHelpProps {
  opened: boolean;
  onClose: () => void;
  keys: ShortcutKeys;
}

export function ShortcutHelp({ opened, onClose, keys: shortcuts }: ShortcutHelpProps) {
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title="Keyboard shortcuts"
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <Stack gap={6}>
        {shortcuts.map(([keys, description]) => (
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
