import { useMemo } from 'react';
import { Link } from 'wouter';
import { cells } from '../../../parts/cells';
import type { Column } from '../../../parts/column';
import { EmptyState } from '../../../parts/EmptyState';
import { ProblemNote } from '../../../parts/ProblemNote';
import { usePages } from '../../../parts/usePages';
import { VirtualTable } from '../../../parts/VirtualTable';
import { Timestamp } from '../../../time/Timestamp';
import { call } from '../../api/call';
import type { Account, Post } from '../../api/types';
import { usePolling } from '../../live/usePolling';
import { AccountName } from '../../parts/AccountMark';
import { PostBadge } from '../../parts/PostBadge';
import { statesOf } from '../../parts/states';
import { titleOf } from '../../text/tokens';
import type { CalendarFilters } from './CalendarFilters';

const PAGE_SIZE = 200;

/** All posts that match the filters, drafts included. */
export function ListView({
  filters,
  accounts,
}: {
  filters: CalendarFilters;
  accounts: Map<string, Account>;
}) {
  const { account, state, label, q, from, to } = filters;
  const { rows, error, refetch, hasNextPage, fetchNextPage, isFetching } = usePages<Post>({
    key: ['posts', 'list', account, state, label, q, from, to],
    fetch: async (cursor, signal) => {
      const query = { account, state: statesOf(state), label, q, from, to, cursor, limit: PAGE_SIZE };
      const { items, next } = await call('GET /posts', { query, signal });
      return { items, next_cursor: next };
    },
    refresh: usePolling(),
  });
  const columns = useMemo(() => columnsFor(accounts), [accounts]);
  if (error !== null) return <ProblemNote error={error} onRetry={() => void refetch()} />;
  if (rows.length === 0 && !isFetching) {
    return (
      <EmptyState icon="search" title="No posts match">
        Change the filters, or write a new post.
      </EmptyState>
    );
  }
  return (
    <VirtualTable
      label="Posts"
      rows={rows}
      columns={columns}
      rowId={rowId}
      rowName={rowName}
      href={hrefOf}
      onEnd={() => void fetchNextPage()}
      more={hasNextPage}
    />
  );
}

const rowId = (post: Post): string => post.id;
const rowName = (post: Post): string => titleOf(post.text) || 'Post without text';
const hrefOf = (post: Post): string => `/posts/${post.id}`;

function columnsFor(accounts: Map<string, Account>): ReadonlyArray<Column<Post>> {
  return [
    {
      name: 'Post',
      width: 'minmax(200px, 3fr)',
      cell: (post) => (
        <>
          <Link href={hrefOf(post)} className={cells.link}>
            {rowName(post)}
          </Link>
          <span className={cells.softLine}>
            {[
              ...post.labels.map((label) => `#${label}`),
              post.needs_reconnection && 'account needs reconnection',
            ]
              .filter(Boolean)
              .join(' · ')}
          </span>
        </>
      ),
    },
    {
      name: 'Account',
      width: 'minmax(140px, 1.2fr)',
      wide: true,
      cell: (post) => <AccountName account={accounts.get(post.account_id)} />,
    },
    {
      name: 'Time',
      width: 'minmax(150px, 1.1fr)',
      narrow: '116px',
      cell: (post) => (
        <Timestamp at={post.published_at ?? post.scheduled_at} show="both" placeholder="No time yet" />
      ),
    },
    { name: 'State', width: '140px', narrow: '116px', cell: (post) => <PostBadge state={post.state} /> },
  ];
}
