import { ReasonDialog } from '../../forms/ReasonDialog';

interface PauseDialogProps {
  /** "Queue mail" */
  subject: string;
  title: string;
  onClose: () => void;
  onPause: (note: string) => Promise<unknown>;
}

export function PauseDialog({ subject, title, onClose, onPause }: PauseDialogProps) {
  return (
    <ReasonDialog
      title={title}
      verb="Pause"
      placeholder="e.g. database migration"
      field="note"
      message={`${subject} paused`}
      onClose={onClose}
      onConfirm={onPause}
    >
      No jobs start until you resume. Running jobs continue.
    </ReasonDialog>
  );
}
