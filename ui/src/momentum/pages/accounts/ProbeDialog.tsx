import { ConfirmDialog } from '../../../parts/ConfirmDialog';

interface ProbeDialogProps {
  platform: string;
  onClose: () => void;
  onConfirm: () => void;
}

/** What the probe risks, before it is turned on. */
export function ProbeDialog({ platform, onClose, onConfirm }: ProbeDialogProps) {
  return (
    <ConfirmDialog
      title="Find out by sending again?"
      verb="I accept the risk"
      onClose={onClose}
      onConfirm={onConfirm}
    >
      Sometimes {platform} takes a post but its answer is lost. Momentum then asks you. With this switch it
      sends the identical post once more instead: {platform} usually refuses it as a duplicate and names the
      first one. It promises that nowhere. If it does not notice, your readers see the post twice.
    </ConfirmDialog>
  );
}
