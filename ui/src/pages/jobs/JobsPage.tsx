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
import { FILTERS, queryOf } from './filters';
import { JobBulkActions } from './JobBulkActions';
import { JobFilterBar } from './JobFilterBar';

const PAGE_SIZE = 100;

export default function JobsPage() {
  const [filters, change] = useUrlParams(FILTERS);
  const canManage = useHasScope('manage');
  const canSubmit = useHasScope('submit');
  const selection = useSelection(filters);
  const list = usePages({
    key: ['jobs', filters],
    fetch: (cursor, signal) =>
      call('GET /jobs', {
        query: { ...queryOf(filters), limit: PAGE_SIZE, ...(cursor && { cursor }) },
        signal,
      }),
    refresh: useRefresh(10_000),
  });
  const { fetchNextPage, hasNextPage, isFetchingNextPage } = list;
  const more = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [fetchNextPage, hasNextPage, isFetchingNextPage]);
  return (
    <>
      <PageHeader
        title="Jobs"
        description="Newest fire time first"
        actions={
          <Button
            component={Link}
            href="/jobs/new"
            leftSection={<Icon name="plus" />}
            disabled={!canSubmit}
            aria-disabled={!canSubmit}
          >
            Submit a job
          </Button>
        }
      />
      <JobFilterBar filters={filters} onChange={change} />
      {list.error !== null && <ProblemNote error={list.error} onRetry={() => void list.refetch()} />}
      {list.isSuccess && list.rows.length === 0 ? (
        <NoJobs filtered={Object.keys(filters).length > 0} />
      ) : (
        <VirtualTable
          label="Jobs"
          rows={list.rows}
          columns={COLUMNS}
          rowId={(row) => row.id}
          rowName={(row) => `job ${row.id}`}
          href={(row) => `/jobs/${row.id}`}
          {...(canManage && { selection })}
          canSelectAll={!filters.worker}
          onEnd={more}
          more={hasNextPage || list.isPending}
        />
      )}
      <JobBulkActions selection={selection} filters={filters} />
    </>
  );
}

function NoJobs({ filtered }: { filtered: boolean }) {
  if (filtered)
    return (
      <EmptyState icon="search" title="No matching jobs">
        Remove a filter. Finished jobs are deleted when their retention time is over.
      </EmptyState>
    );
  return (
    <EmptyState
      icon="job"
      title="No jobs yet"
      action={
        <Button component={Link} href="/jobs/new" mt="sm">
          Submit the first one
        </Button>
      }
    >
      A job is one unit of work: a fire of a schedule, or something you submit once. It appears here as soon
      as it is created.
    </EmptyState>
  );
}
