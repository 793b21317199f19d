import { Text, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { showSuccess } from '../parts/toasts';
import { DialogForm } from './DialogForm';
import { fieldErrors } from './fieldErrors';

interface ReasonDialogProps {
  title: string;
  verb: string;
  placeholder: string;
  /** The name of the reason in the request. */
  field: 'reason' | 'note';
  danger?: boolean;
  /** Said when the action has succeeded. */
  message: string;
  children: ReactNode;
  onClose: () => void;
  onConfirm: (reason: string) => Promise<unknown>;
}

/** Asks before an action, and for its reason, so that others can see it. It stays open if the server refuses. */
export function ReasonDialog({
  title,
  verb,
  placeholder,
  field,
  danger = false,
  message,
  children,
  onClose,
  onConfirm,
}: ReasonDialogProps) {
  const client = useQueryClient();
  const [reason, setReason] = useState('');
  const act = useMutation({
    mutationFn: () => onConfirm(reason.trim()),
    onSuccess: () => {
      showSuccess(message);
      onClose();
    },
    onSettled: () => client.invalidateQueries(),
  });
  return (
    <DialogForm
      title={title}
      verb={verb}
      danger={danger}
      closeLabel="Close"
      errorTitle="Not done"
      error={act.error}
      isPending={act.isPending}
      onClose={onClose}
      onSubmit={() => act.mutate()}
    >
      <Text size="sm">{children}</Text>
      <TextInput
        label="Reason"
        description="Shown to other users"
        placeholder={placeholder}
        value={reason}
        onChange={(event) => setReason(event.currentTarget.value)}
        error={fieldErrors(act.error)(field)}
        data-autofocus
      />
    </DialogForm>
  );
}
