import { useCallback } from 'react';
import { call } from '../../api/call';
import type { JobBulk } from '../../api/types';
import { BulkDialog, type BulkAction } from '../../bulk/BulkDialog';

export interface DeadAction {
  action: 'retry' | 'discard';
  filter: NonNullable<JobBulk['filter']>;
}

const ACTIONS: Record<DeadAction['action'], BulkAction> = {
  retry: { verb: 'Retry', done: 'retried', note: 'Each one runs again as a new job with the same payload.' },
  discard: {
    verb: 'Discard',
    done: 'discarded',
    danger: true,
    note: 'They are removed from this list permanently.',
  },
};

export function DeadBulk({ selected, onClose }: { selected: DeadAction; onClose: () => void }) {
  const step = useCallback(
    (options: { dry_run?: boolean; cursor?: string }) =>
      call('POST /jobs/bulk', {
        body: { action: selected.action, filter: { ...selected.filter, state: 'dead' }, ...options },
      }),
    [selected],
  );
  return <BulkDialog action={ACTIONS[selected.action]} noun="dead letter" step={step} onClose={onClose} />;
}
