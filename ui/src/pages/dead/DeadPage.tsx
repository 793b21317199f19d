import { Accordion, Alert, Button, Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { call } from '../../api/call';
import { useRefresh } from '../../live/liveContext';
import { EmptyState } from '../../parts/EmptyState';
import { Icon } from '../../parts/Icon';
import { PageHeader } from '../../parts/PageHeader';
import { ProblemNote } from '../../parts/ProblemNote';
import { useMay } from '../../session/sessionContext';
import { DeadBulk, type DeadWanted } from './DeadBulk';
import { DeadGroupItem } from './DeadGroupItem';

export default function DeadPage() {
  const may = useMay('manage');
  const [wanted, setWanted] = useState<DeadWanted | null>(null);
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
        about="Jobs whose retries are spent, by what went wrong"
        actions={
          <>
            <Button variant="default" leftSection={<Icon name="retry" />} disabled={!may || none} onClick={() => setWanted({ action: 'retry', filter: {} })}>
              Retry all
            </Button>
            <Button variant="default" c="var(--state-dead)" leftSection={<Icon name="trash" />} disabled={!may || none} onClick={() => setWanted({ action: 'discard', filter: {} })}>
              Discard all
            </Button>
          </>
        }
      />
      {error !== null && <ProblemNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton height={240} />}
      {none && (
        <EmptyState icon="check" title="No dead letters">
          A job whose attempts have all failed comes here, with its error and its payload, and waits for you to retry or discard it.
        </EmptyState>
      )}
      {data && !data.complete && (
        <Alert color="yellow" icon={<Icon name="warning" />} mb="md">
          There are more than could be counted; these are the newest.
        </Alert>
      )}
      <Accordion variant="separated" multiple>
        {data?.items.map((group) => (
          <DeadGroupItem key={`${group.target} ${group.error}`} group={group} onBulk={setWanted} />
        ))}
      </Accordion>
      {wanted !== null && <DeadBulk wanted={wanted} onClose={() => setWanted(null)} />}
    </>
  );
}
