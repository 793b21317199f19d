import { Button } from '@mantine/core';
import { useCallback, useState } from 'react';
import { call } from '../../api/call';
import type { ScheduleBulk } from '../../api/types';
import { BulkBar } from '../../bulk/BulkBar';
import { BulkDialog, type BulkAction } from '../../bulk/BulkDialog';
import type { Selection } from '../../parts/useSelection';
import { bulkFilterOf, type ScheduleFilters } from './filters';

type Name = ScheduleBulk['action'];

const ACTIONS: Record<Name, BulkAction> = {
  pause: {
    verb: 'Pause',
    done: 'paused',
    note: 'They stop firing until you resume them. Their pending jobs are removed.',
  },
  resume: { verb: 'Resume', done: 'resumed', note: 'They start firing again.' },
  trigger: {
    verb: 'Run now',
    done: 'started',
    note: 'Each one creates a job now, in addition to its normal fires.',
  },
  remove: {
    verb: 'Delete',
    done: 'deleted',
    danger: true,
    note: 'They are deleted permanently, with their pending jobs. Past jobs are kept.',
  },
};

export function ScheduleBulkActions({
  selection,
  filters,
}: {
  selection: Selection;
  filters: ScheduleFilters;
}) {
  const [action, setAction] = useState<Name | null>(null);
  const step = useCallback(
    (options: { dry_run?: boolean; cursor?: string }) =>
      call('POST /schedules/bulk', {
        body: {
          action: action ?? 'pause',
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
      <BulkBar selection={selection} noun="schedule">
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
      {action !== null && <BulkDialog action={ACTIONS[action]} noun="schedule" step={step} onClose={close} />}
    </>
  );
}
