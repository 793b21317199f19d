import { Button } from '@mantine/core';
import { useCallback } from 'react';
import { Link } from 'wouter';
import { call } from '../../api/call';
import { useRefresh } from '../../live/liveContext';
import { EmptyState } from '../../parts/EmptyState';
import { Icon } from '../../parts/Icon';
import { PageHeader } from '../../parts/PageHeader';
import { ProblemNote } from '../../parts/ProblemNote';
import { useUrlParams } from '../../parts/useUrlParams';
import { usePages } from '../../parts/usePages';
import { useSelection } from '../../parts/useSelection';
import { VirtualTable } from '../../parts/VirtualTable';
import { useHasScope } from '../../session/sessionContext';
import { COLUMNS } from './columns';
import { FILTERS, queryOf, type ScheduleFilters } from './filters';
import { FirstSchedule } from './FirstSchedule';
import { ScheduleBulkActions } from './ScheduleBulkActions';
import { ScheduleFilterBar } from './ScheduleFilterBar';
import { useScheduleCount } from './useScheduleCount';

const PAGE_SIZE = 200;

export default function SchedulesPage() {
  const [filters, change] = useUrlParams(FILTERS);
  const canManage = useHasScope('manage');
  const list = useSchedules(filters);
  const selection = useSelection(filters);
  const count = useScheduleCount(filters);
  const { fetchNextPage, hasNextPage, isFetchingNextPage } = list;
  const more = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [fetchNextPage, hasNextPage, isFetchingNextPage]);
  const filtered = Object.keys(filters).length > 0;
  return (
    <>
      <PageHeader
        title="Schedules"
        description={
          count === null ? 'Recurring and planned jobs' : `${count} ${filtered ? 'matching' : 'total'}`
        }
        actions={
          <Button
            component={Link}
            href="/schedules/new"
            leftSection={<Icon name="plus" />}
            disabled={!canManage}
            aria-disabled={!canManage}
          >
            New schedule
          </Button>
        }
      />
      <ScheduleFilterBar filters={filters} onChange={change} />
      {list.error !== null && <ProblemNote error={list.error} onRetry={() => void list.refetch()} />}
      {list.isSuccess && list.rows.length === 0 ? (
        filtered ? (
          <EmptyState icon="search" title="No matching schedules">
            Remove a filter, or search for another part of the name.
          </EmptyState>
        ) : (
          <FirstSchedule />
        )
      ) : (
        <VirtualTable
          label="Schedules"
          rows={list.rows}
          columns={COLUMNS}
          rowId={(row) => row.id}
          rowName={(row) => row.name}
          href={(row) => `/schedules/${row.id}`}
          {...(canManage && { selection })}
          onEnd={more}
          more={hasNextPage || list.isPending}
        />
      )}
      <ScheduleBulkActions selection={selection} filters={filters} />
    </>
  );
}

function useSchedules(filters: ScheduleFilters) {
  return usePages({
    key: ['schedules', filters],
    fetch: (cursor, signal) =>
      call('GET /schedules', {
        query: { ...queryOf(filters), limit: PAGE_SIZE, ...(cursor && { cursor }) },
        signal,
      }),
    refresh: useRefresh(30_000),
  });
}
