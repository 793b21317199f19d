import { Accordion, Alert, Button, Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { call } from '../../api/call';
import { useRefresh } from '../../live/liveContext';
import { EmptyState } from '../../parts/EmptyState';
import { Icon } from '../../parts/Icon';
import { PageHeader } from '../../parts/PageHeader';
import { ProblemNote } from '../../parts/ProblemNote';
import { useHasScope } from '../../session/sessionContext';
import { DeadBulk, type DeadAction } from './DeadBulk';
import { DeadGroupItem } from './DeadGroupItem';

export default function DeadPage() {
  const canManage = useHasScope('manage');
  const [pendingAction, setPendingAction] = useState<DeadAction | null>(null);
  const { data, error, refetch } = useQuery({
    queryKey: ['dead'],
    queryFn: ({ signal }) => call('GET /dead', { signal }),
    refetchInterval: useRefresh(10_000),
  });
  const none = data?.items.length === 0;
  return (
    <>
      <PageHeader
        title="Dead letters"
        description="Jobs whose attempts have all failed, grouped by error"
        actions={
          <>
            <Button
              variant="default"
              leftSection={<Icon name="retry" />}
              disabled={!canManage || none}
              onClick={() => setPendingAction({ action: 'retry', filter: {} })}
            >
              Retry all
            </Button>
            <Button
              variant="default"
              c="var(--state-dead)"
              leftSection={<Icon name="trash" />}
              disabled={!canManage || none}
              onClick={() => setPendingAction({ action: 'discard', filter: {} })}
            >
              Discard all
            </Button>
          </>
        }
      />
      {error !== null && <ProblemNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton height={240} />}
      {none && (
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
          <DeadGroupItem key={`${group.target} ${group.error}`} group={group} onBulk={setPendingAction} />
        ))}
      </Accordion>
      {pendingAction !== null && <DeadBulk selected={pendingAction} onClose={() => setPendingAction(null)} />}
    </>
  );
}
