import { Button } from '@mantine/core';
import { useCallback } from 'react';
import { Link } from 'wouter';
import { call } from '../../api/call';
import { useRefresh } from '../../live/liveContext';
import { EmptyState } from '../../parts/EmptyState';
import { Icon } from '../../parts/Icon';
import { PageHeader } from '../../parts/PageHeader';
import { ProblemNote } from '../../parts/ProblemNote';
import { useAddress } from '../../parts/useAddress';
import { usePages } from '../../parts/usePages';
import { useSelection } from '../../parts/useSelection';
import { VirtualTable } from '../../parts/VirtualTable';
import { useMay } from '../../session/sessionContext';
import { COLUMNS } from './columns';
import { FILTERS, queryOf, type ScheduleFilters } from './filters';
import { FirstSchedule } from './FirstSchedule';
import { ScheduleBulkActions } from './ScheduleBulkActions';
import { ScheduleFilterBar } from './ScheduleFilterBar';
import { useScheduleCount } from './useScheduleCount';

const A_PAGE = 200;

export default function SchedulesPage() {
  const [filters, change] = useAddress(FILTERS);
  const mayManage = useMay('manage');
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
        about={count === null ? 'What runs again and again' : `${count} ${filtered ? 'match' : 'in all'}`}
        actions={
          <Button component={Link} href="/schedules/new" leftSection={<Icon name="plus" />} disabled={!mayManage} aria-disabled={!mayManage}>
            New schedule
          </Button>
        }
      />
      <ScheduleFilterBar filters={filters} onChange={change} />
      {list.error !== null && <ProblemNote error={list.error} onRetry={() => void list.refetch()} />}
      {list.isSuccess && list.rows.length === 0 ? (
        filtered ? <EmptyState icon="search" title="No schedule matches">Take a filter away, or search for another part of the name.</EmptyState> : <FirstSchedule />
      ) : (
        <VirtualTable
          label="Schedules"
          rows={list.rows}
          columns={COLUMNS}
          rowId={(row) => row.id}
          rowName={(row) => row.name}
          href={(row) => `/schedules/${row.id}`}
          {...(mayManage && { selection })}
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
    fetch: (cursor, signal) => call('GET /schedules', { query: { ...queryOf(filters), limit: A_PAGE, ...(cursor && { cursor }) }, signal }),
    refresh: useRefresh(30_000),
  });
}
