import { Button, Group, Modal, Stack } from '@mantine/core';
import type { ReactNode, SubmitEvent } from 'react';
import { FormProblem } from './FormProblem';

interface DialogFormProps {
  title: string;
  verb: string;
  danger?: boolean;
  closeLabel?: string;
  /** What is wrong with the input, from the server. */
  error: unknown;
  errorTitle?: string;
  isPending: boolean;
  size?: string;
  children: ReactNode;
  onClose: () => void;
  onSubmit: () => void;
}

/** A form in a dialog. A click next to it does not lose the input. The server checks the fields. */
export function DialogForm({
  title,
  verb,
  danger = false,
  closeLabel = 'Cancel',
  error,
  errorTitle = 'Not saved',
  isPending,
  size = 'md',
  children,
  onClose,
  onSubmit,
}: DialogFormProps) {
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    if (!isPending) onSubmit();
  };
  return (
    <Modal
      opened
      onClose={onClose}
      title={title}
      size={size}
      closeOnClickOutside={false}
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <form onSubmit={submit} noValidate>
        <Stack>
          {children}
          {error !== null && <FormProblem error={error} title={errorTitle} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              {closeLabel}
            </Button>
            <Button type="submit" loading={isPending} {...(danger && { color: 'red' })}>
              {verb}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
