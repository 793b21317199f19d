import { ReasonDialog } from '../../parts/ReasonDialog';

interface PauseDialogProps {
  title: string;
  onClose: () => void;
  onPause: (note: string) => void;
}

export function PauseDialog({ title, onClose, onPause }: PauseDialogProps) {
  return (
    <ReasonDialog
      title={title}
      verb="Pause"
      placeholder="e.g. database migration"
      onClose={onClose}
      onConfirm={onPause}
    >
      No jobs start until you resume. Running jobs continue.
    </ReasonDialog>
  );
}
