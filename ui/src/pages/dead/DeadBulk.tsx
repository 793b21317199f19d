import { useCallback } from 'react';
import { call } from '../../api/call';
import type { JobBulk } from '../../api/types';
import { BulkDialog, type BulkAction } from '../../bulk/BulkDialog';

export interface DeadWanted {
  action: 'retry' | 'discard';
  filter: NonNullable<JobBulk['filter']>;
}

const ACTIONS: Record<DeadWanted['action'], BulkAction> = {
  retry: { verb: 'Retry', done: 'retried', note: 'Each is run again as a new job with the same payload.' },
  discard: { verb: 'Discard', done: 'discarded', danger: true, note: 'They are taken off this list for good.' },
};

export function DeadBulk({ wanted, onClose }: { wanted: DeadWanted; onClose: () => void }) {
  const step = useCallback(
    (options: { dry_run?: boolean; cursor?: string }) => call('POST /jobs/bulk', { body: { action: wanted.action, filter: { ...wanted.filter, state: 'dead' }, ...options } }),
    [wanted],
  );
  return <BulkDialog action={ACTIONS[wanted.action]} what="dead letters" step={step} onClose={onClose} />;
}
