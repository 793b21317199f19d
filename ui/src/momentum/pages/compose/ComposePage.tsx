import { Skeleton } from '@mantine/core';
import { useCallback } from 'react';
import { useSearchParams } from 'wouter';
import { PageHeader } from '../../../parts/PageHeader';
import { ProblemNote } from '../../../parts/ProblemNote';
import { useViewerZone } from '../../../time/viewerZone';
import { connected, useAccounts } from '../../api/queries';
import { FirstSteps } from '../../parts/FirstSteps';
import { Composer } from './Composer';
import { emptyDraft } from './composerDraft';

export default function ComposePage() {
  const zone = useViewerZone();
  const [search] = useSearchParams();
  const { data, error, refetch } = useAccounts();
  const accounts = connected(data);
  const only = accounts.length === 1 ? accounts[0]?.id : undefined;
  const [date, time] = [search.get('date') ?? '', search.get('time') ?? ''];
  const make = useCallback(
    () => ({ ...emptyDraft(zone, { date, time }), accountIds: only ? [only] : [] }),
    [zone, date, time, only],
  );
  return (
    <>
      <PageHeader title="New post" description="Write it, see it, and choose when it goes out." />
      {error !== null && <ProblemNote error={error} onRetry={() => void refetch()} />}
      {data === undefined ? (
        error === null && <Skeleton height={420} />
      ) : accounts.length === 0 ? (
        <FirstSteps />
      ) : (
        <Composer accounts={accounts} make={make} />
      )}
    </>
  );
}
