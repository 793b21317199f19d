import type { ReactNode } from 'react';
import { DialogForm } from '../../forms/DialogForm';
import type { useSave } from './useSave';

interface SaveFormProps {
  noun: string;
  /** The rule or channel to edit; without it a new one. */
  edited?: { name: string };
  save: ReturnType<typeof useSave>;
  children: ReactNode;
  onClose: () => void;
}

/** The form of a rule or channel, in a dialog. */
export function SaveForm({ noun, edited, save, children, onClose }: SaveFormProps) {
  return (
    <DialogForm
      title={edited ? `Edit ${noun} ${edited.name}` : `New ${noun}`}
      verb={edited ? `Save ${noun}` : `Create ${noun}`}
      size="lg"
      error={save.error}
      isPending={save.isPending}
      onClose={onClose}
      onSubmit={save.submit}
    >
      {children}
    </DialogForm>
  );
}
