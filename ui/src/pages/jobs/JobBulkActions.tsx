import { Button } from '@mantine/core';
import { useCallback, useState } from 'react';
import { call } from '../../api/call';
import type { JobBulk } from '../../api/types';
import { BulkBar } from '../../bulk/BulkBar';
import { BulkDialog, type BulkAction } from '../../bulk/BulkDialog';
import type { Selection } from '../../parts/useSelection';
import { bulkFilterOf, type JobFilters } from './filters';

type Name = JobBulk['action'];

const ACTIONS: Record<Name, BulkAction> = {
  cancel: {
    verb: 'Cancel',
    done: 'cancelled',
    danger: true,
    note: 'Running jobs are asked to stop. Pending jobs never start.',
  },
  run: { verb: 'Run now', done: 'due now', note: 'Pending jobs become due immediately.' },
  retry: { verb: 'Retry', done: 'retried', note: 'Each dead letter among them runs again as a new job.' },
  discard: {
    verb: 'Discard',
    done: 'discarded',
    danger: true,
    note: 'Dead letters among them are removed from the list permanently.',
  },
};

export function JobBulkActions({ selection, filters }: { selection: Selection; filters: JobFilters }) {
  const [action, setAction] = useState<Name | null>(null);
  const step = useCallback(
    (options: { dry_run?: boolean; cursor?: string }) =>
      call('POST /jobs/bulk', {
        body: {
          action: action ?? 'cancel',
          ...(selection.all ? { filter: bulkFilterOf(filters) } : { ids: selection.ids }),
          ...options,
        },
      }),
    [action, selection.all, selection.ids, filters],
  );
  const close = () => {
    setAction(null);
    selection.clear();
  };
  return (
    <>
      <BulkBar selection={selection} noun="job">
        {(Object.keys(ACTIONS) as Name[]).map((name) => (
          <Button
            key={name}
            variant="default"
            size="xs"
            {...(ACTIONS[name].danger && { c: 'var(--state-dead)' })}
            onClick={() => setAction(name)}
          >
            {ACTIONS[name].verb}
          </Button>
        ))}
      </BulkBar>
      {action !== null && <BulkDialog action={ACTIONS[action]} noun="job" step={step} onClose={close} />}
    </>
  );
}
