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
  pause: { verb: 'Pause', done: 'paused', note: 'They fire no more until resumed; jobs not yet started are withdrawn.' },
  resume: { verb: 'Resume', done: 'resumed', note: 'They fire again from now on.' },
  trigger: { verb: 'Run', done: 'run', note: 'Each gets one job now, beside its ordinary fires.' },
  remove: { verb: 'Delete', done: 'deleted', danger: true, note: 'They are gone for good, with their jobs not yet started. Past jobs stay.' },
};

export function ScheduleBulkActions({ selection, filters }: { selection: Selection; filters: ScheduleFilters }) {
  const [action, setAction] = useState<Name | null>(null);
  const step = useCallback(
    (options: { dry_run?: boolean; cursor?: string }) =>
      call('POST /schedules/bulk', {
        body: { action: action ?? 'pause', ...(selection.all ? { filter: bulkFilterOf(filters) } : { ids: selection.ids }), ...options },
      }),
    [action, selection.all, selection.ids, filters],
  );
  const close = () => {
    setAction(null);
    selection.clear();
  };
  return (
    <>
      <BulkBar selection={selection} what="schedules">
        {(Object.keys(ACTIONS) as Name[]).map((name) => (
          <Button key={name} variant="default" size="xs" {...(ACTIONS[name].danger && { c: 'var(--state-dead)' })} onClick={() => setAction(name)}>
            {ACTIONS[name].verb}
          </Button>
        ))}
      </BulkBar>
      {action !== null && <BulkDialog action={ACTIONS[action]} what="schedules" step={step} onClose={close} />}
    </>
  );
}
