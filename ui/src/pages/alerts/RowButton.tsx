import { Button } from '@mantine/core';
import { useHasScope } from '../../session/sessionContext';

interface RowButtonProps {
  verb: string;
  /** What it acts on: a screen reader reads it with the verb. */
  subject: string;
  isDangerous?: boolean;
  isPending?: boolean;
  onClick: () => void;
}

/** A button in a row of a table, for users who may change alerts. */
export function RowButton({ verb, subject, isDangerous, isPending, onClick }: RowButtonProps) {
  const canManage = useHasScope('manage');
  return (
    <Button
      size="xs"
      variant="default"
      disabled={!canManage}
      loading={isPending ?? false}
      aria-label={`${verb} ${subject}`}
      onClick={onClick}
      {...(isDangerous && canManage && { c: 'var(--state-dead)' })}
    >
      {verb}
    </Button>
  );
}
