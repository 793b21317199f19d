import { Button, Group, Modal, Text } from '@mantine/core';
import type { ReactNode } from 'react';

interface ConfirmDialogProps {
  title: string;
  verb: string;
  children: ReactNode;
  danger?: boolean;
  onClose: () => void;
  onConfirm: () => void;
}

export function ConfirmDialog({
  title,
  verb,
  children,
  danger = true,
  onClose,
  onConfirm,
}: ConfirmDialogProps) {
  return (
    <Modal opened onClose={onClose} title={title} closeButtonProps={{ 'aria-label': 'Close' }}>
      <Text size="sm">{children}</Text>
      <Group justify="flex-end" mt="lg">
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
        <Button
          {...(danger && { color: 'red' })}
          onClick={() => {
            onClose();
            onConfirm();
          }}
          data-autofocus
        >
          {verb}
        </Button>
      </Group>
    </Modal>
  );
}
