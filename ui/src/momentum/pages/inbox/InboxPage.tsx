import { Skeleton, Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { EmptyState } from '../../../parts/EmptyState';
import { PageHeader } from '../../../parts/PageHeader';
import { ProblemNote } from '../../../parts/ProblemNote';
import { call } from '../../api/call';
import { useAccounts } from '../../api/queries';
import type { InboxItem } from '../../api/types';
import { usePolling } from '../../live/usePolling';
import { decisionsOf } from './decisionsOf';
import { InboxCard } from './InboxCard';

export default function InboxPage() {
  const accounts = useAccounts();
  const { data, error, refetch } = useQuery({
    queryKey: ['inbox'],
    queryFn: ({ signal }) => call('GET /inbox', { signal }),
    refetchInterval: usePolling(),
  });
  const accountOf = (item: InboxItem) =>
    accounts.data?.find(({ id }) => id === (item.account_id ?? item.post?.account_id));
  const decisions = data && decisionsOf(data.items, accounts.data ?? []);
  return (
    <>
      <PageHeader title="Inbox" description="What needs a decision of yours." />
      {error !== null && <ProblemNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton height={240} />}
      {decisions?.length === 0 && (
        <EmptyState icon="check" title="Nothing to decide">
          Posts whose outcome is in doubt, failed posts and accounts that must be connected again appear here.
        </EmptyState>
      )}
      <Stack maw={860} component="ul" p={0} m={0} aria-label="Decisions">
        {decisions?.map((item) => (
          <InboxCard key={keyOf(item)} item={item} account={accountOf(item)} />
        ))}
      </Stack>
    </>
  );
}

const keyOf = ({ kind, post, account_id, platform }: InboxItem): string =>
  [kind, post?.id, account_id, platform].join(' ');
