import { useCallback } from 'react';
import { call } from '../../api/call';
import type { JobBulk } from '../../api/types';
import { BulkDialog, type BulkAction } from '../../bulk/BulkDialog';

export type DeadFilter = Pick<NonNullable<JobBulk['filter']>, 'target' | 'error' | 'error_group' | 'payload'>;

export interface DeadAction {
  action: 'retry' | 'discard';
  /** The dead letters: those that match, or these. */
  filter?: DeadFilter;
  ids?: string[];
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
        body: {
          action: selected.action,
          ...(selected.ids
            ? { ids: selected.ids }
            : { filter: { ...selected.filter, state: 'dead' as const } }),
          ...options,
        },
      }),
    [selected],
  );
  return <BulkDialog action={ACTIONS[selected.action]} noun="dead letter" step={step} onClose={onClose} />;
}
