import { Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core';
import { useState, type ReactNode, type SubmitEvent } from 'react';

interface ReasonDialogProps {
  title: string;
  verb: string;
  placeholder: string;
  danger?: boolean;
  children: ReactNode;
  onClose: () => void;
  onConfirm: (reason: string) => void;
}

/** Asks before an action, and for its reason, so that others can see it. */
export function ReasonDialog({
  title,
  verb,
  placeholder,
  danger = false,
  children,
  onClose,
  onConfirm,
}: ReasonDialogProps) {
  const [reason, setReason] = useState('');
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    onClose();
    onConfirm(reason.trim());
  };
  return (
    <Modal opened onClose={onClose} title={title} closeButtonProps={{ 'aria-label': 'Close' }}>
      <form onSubmit={submit}>
        <Stack>
          <Text size="sm">{children}</Text>
          <TextInput
            label="Reason"
            description="Shown to other users"
            placeholder={placeholder}
            value={reason}
            onChange={(event) => setReason(event.currentTarget.value)}
            data-autofocus
          />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Close
            </Button>
            <Button type="submit" {...(danger && { color: 'red' })}>
              {verb}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
