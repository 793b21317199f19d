import { Accordion, Alert, Button, Group, Skeleton } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { call } from '../../api/call';
import { useRefresh } from '../../live/liveContext';
import { EmptyState } from '../../parts/EmptyState';
import { FilterText } from '../../parts/FilterText';
import { Icon } from '../../parts/Icon';
import { PageHeader } from '../../parts/PageHeader';
import { ProblemNote } from '../../parts/ProblemNote';
import { useUrlParams } from '../../parts/useUrlParams';
import { useHasScope } from '../../session/sessionContext';
import { DeadBulk, type DeadAction } from './DeadBulk';
import { DeadGroupItem } from './DeadGroupItem';

const FILTERS = ['target', 'error', 'payload'] as const;

export default function DeadPage() {
  const canManage = useHasScope('manage');
  const [filters, change] = useUrlParams(FILTERS);
  const filtered = Object.keys(filters).length > 0;
  const [pendingAction, setPendingAction] = useState<DeadAction | null>(null);
  const { data, error, refetch } = useQuery({
    queryKey: ['dead', filters],
    queryFn: ({ signal }) => call('GET /dead', { query: filters, signal }),
    placeholderData: keepPreviousData,
    enabled: !filters.payload || filters.payload.includes(':'), // not while it is being typed
    refetchInterval: useRefresh(10_000),
  });
  const none = data?.items.length === 0;
  return (
    <>
      <PageHeader
        title="Dead letters"
        description="Jobs whose attempts have all failed, grouped by cause: type, message and place"
        actions={
          <>
            <Button
              variant="default"
              leftSection={<Icon name="retry" />}
              disabled={!canManage || none}
              onClick={() => setPendingAction({ action: 'retry', filter: filters })}
            >
              Retry all
            </Button>
            <Button
              variant="default"
              c="var(--state-dead)"
              leftSection={<Icon name="trash" />}
              disabled={!canManage || none}
              onClick={() => setPendingAction({ action: 'discard', filter: filters })}
            >
              Discard all
            </Button>
          </>
        }
      />
      {error !== null && <ProblemNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton height={240} />}
      <Group gap="xs" mb="sm">
        <FilterText
          value={filters.error ?? ''}
          onFilter={(text) => change({ error: text })}
          placeholder="Error contains"
          aria-label="Error contains"
          leftSection={<Icon name="search" size={15} />}
          flex="1 1 180px"
          maw={320}
          data-search
        />
        <FilterText
          value={filters.payload ?? ''}
          onFilter={(payload) => change({ payload })}
          placeholder="Payload field, e.g. order.id:17"
          aria-label="Payload field"
          flex="1 1 180px"
          maw={280}
        />
        <FilterText
          value={filters.target ?? ''}
          onFilter={(target) => change({ target })}
          placeholder="Task"
          aria-label="Task"
          flex="1 1 120px"
          maw={220}
        />
      </Group>
      {none && filtered && (
        <EmptyState icon="search" title="No matching dead letters">
          Remove a filter. A payload field is searched as <code>name:value</code>.
        </EmptyState>
      )}
      {none && !filtered && (
        <EmptyState icon="check" title="No dead letters">
          A job that fails all its attempts appears here with its error and payload. You can then retry or
          discard it.
        </EmptyState>
      )}
      {data && !data.complete && (
        <Alert color="yellow" icon={<Icon name="warning" />} mb="md">
          There are too many to count. Only the newest are shown.
        </Alert>
      )}
      <Accordion variant="separated" multiple>
        {data?.items.map((group) => (
          <DeadGroupItem
            key={`${group.target} ${group.error}`}
            group={group}
            search={filters}
            onBulk={setPendingAction}
          />
        ))}
      </Accordion>
      {pendingAction !== null && <DeadBulk selected={pendingAction} onClose={() => setPendingAction(null)} />}
    </>
  );
}
