import { ActionIcon, Button, Group, SegmentedControl, Skeleton } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useDeferredValue, useMemo, useRef, useState } from 'react';
import { PageHeader } from '../../../parts/PageHeader';
import { ProblemNote } from '../../../parts/ProblemNote';
import { useUrlParams } from '../../../parts/useUrlParams';
import { serverNow } from '../../../time/clock';
import { instantOf, localInput, zoneName } from '../../../time/format';
import { useViewerZone } from '../../../time/viewerZone';
import { call } from '../../api/call';
import { connected, useAccounts } from '../../api/queries';
import type { SlimPost } from '../../api/types';
import { ImportDialog } from '../../import/ImportDialog';
import { usePolling } from '../../live/usePolling';
import { FirstSteps } from '../../parts/FirstSteps';
import { Glyph } from '../../parts/Glyph';
import { statesOf } from '../../parts/states';
import { addDays } from '../../when/dates';
import { resolveWhen } from '../../when/when';
import { CalendarContext } from './calendarContext';
import { FilterBar } from './CalendarFilters';
import { CalendarGrid } from './CalendarGrid';
import { ListView } from './ListView';
import { MoveDialog } from './MoveDialog';
import { PER_DAY, PER_HOUR, rangeOf, VIEWS, type View } from './range';
import { SpanNote } from './SpanNote';
import { useMove } from './useMove';

const PARAMS = ['view', 'date', 'account', 'state', 'label', 'q', 'from', 'to'] as const;

export default function CalendarPage() {
  const zone = useViewerZone();
  const [params, change] = useUrlParams(PARAMS);
  const { account, state, label, q } = params;
  const today = localInput(serverNow(), zone).slice(0, 10);
  const view = (VIEWS.find(({ value }) => value === params.view)?.value ?? 'month') satisfies View;
  const date = params.date ?? today;
  const range = rangeOf(view, date);
  const [moving, setMoving] = useState<SlimPost | null>(null);
  const [importing, setImporting] = useState(false);
  const dragged = useRef<SlimPost | null>(null);
  const move = useMove();

  const accounts = useAccounts();
  const byId = useMemo(() => new Map(accounts.data?.map((one) => [one.id, one])), [accounts.data]);
  const any = useQuery({
    queryKey: ['posts', 'any'],
    queryFn: ({ signal }) => call('GET /posts', { query: { limit: 1 }, signal }),
  });
  const { data, error, refetch } = useQuery({
    queryKey: ['calendar', view, range.from, range.to, zone, account, state, label, q],
    queryFn: ({ signal }) =>
      call('GET /calendar', {
        query: {
          from: range.from,
          to: range.to,
          zone,
          account,
          state: statesOf(state),
          label,
          q,
          per_day: PER_DAY,
          per_hour: view === 'week' || view === 'day' ? PER_HOUR[view] : undefined,
        },
        signal,
      }),
    enabled: view !== 'list',
    placeholderData: keepPreviousData,
    refetchInterval: usePolling(),
  });
  const days = useMemo(() => data && new Map(data.days.map((day) => [day.date, day])), [data]);
  const grid = useDeferredValue(useMemo(() => days && { view, date, days }, [view, date, days]));
  const actions = useMemo(
    () => ({
      zone,
      accounts: byId,
      onDrag: (post: SlimPost | null) => {
        dragged.current = post;
      },
      onDrop: (to: string, hour?: number) => {
        const post = dragged.current;
        if (post === null) return;
        const [before = '', clock = ''] = localInput(Date.parse(post.scheduled_at), zone).split('T');
        const time = hour === undefined ? clock : `${String(hour).padStart(2, '0')}${clock.slice(2)}`;
        const resolved = resolveWhen({ date: to, time, zone, later: false });
        if (resolved && (to !== before || time !== clock)) void move(post, resolved.at, zone);
      },
      onMove: setMoving,
      onOpenDay: (day: string) => change({ view: 'day', date: day }),
      onOpenHour: (day: string, hour: number) => {
        const at = (clock: number) =>
          clock < 24
            ? instantOf(`${day}T${String(clock).padStart(2, '0')}:00:00`, zone)
            : instantOf(`${addDays(day, 1)}T00:00:00`, zone);
        const [from, to] = [at(hour), at(hour + 1)].map((one) => new Date(one ?? 0).toISOString());
        change({ view: 'list', from, to });
      },
    }),
    [zone, byId, move, change],
  );

  const hasAccount = connected(accounts.data).length > 0;
  const isNew = accounts.data !== undefined && any.data?.items.length === 0;
  return (
    <CalendarContext value={actions}>
      <PageHeader
        title={isNew ? 'Welcome to Momentum' : range.title}
        description={
          isNew ? 'Posts that go out on time, once.' : `Times in ${zone} (${zoneName(serverNow(), zone)})`
        }
        actions={
          !isNew && (
            <>
              <Button
                variant="default"
                leftSection={<Glyph name="upload" />}
                onClick={() => setImporting(true)}
              >
                Import
              </Button>
              {view !== 'list' && (
                <Group gap={4} wrap="nowrap">
                  <ActionIcon
                    variant="default"
                    size={36}
                    onClick={() => change({ date: range.previous })}
                    aria-label={`Previous ${view}`}
                  >
                    <Glyph name="left" />
                  </ActionIcon>
                  <Button variant="default" onClick={() => change({ date: '' })}>
                    Today
                  </Button>
                  <ActionIcon
                    variant="default"
                    size={36}
                    onClick={() => change({ date: range.next })}
                    aria-label={`Next ${view}`}
                  >
                    <Glyph name="right" />
                  </ActionIcon>
                </Group>
              )}
              <SegmentedControl
                aria-label="View"
                data={[...VIEWS]}
                value={view}
                onChange={(next) => change({ view: next === 'month' ? '' : next, from: '', to: '' })}
              />
            </>
          )
        }
      />
      {isNew ? (
        <FirstSteps hasAccount={hasAccount} />
      ) : (
        <>
          <FilterBar accounts={connected(accounts.data)} filters={params} onChange={change} />
          {error !== null && <ProblemNote error={error} onRetry={() => void refetch()} />}
          {view === 'list' && params.from && params.to && (
            <SpanNote from={params.from} to={params.to} onClear={() => change({ from: '', to: '' })} />
          )}
          {view === 'list' && <ListView filters={params} accounts={byId} />}
          {view !== 'list' && grid === undefined && error === null && <Skeleton height={560} />}
          {view !== 'list' && grid && <CalendarGrid grid={grid} today={today} />}
        </>
      )}
      {moving && <MoveDialog post={moving} onClose={() => setMoving(null)} />}
      {importing && <ImportDialog onClose={() => setImporting(false)} />}
    </CalendarContext>
  );
}
