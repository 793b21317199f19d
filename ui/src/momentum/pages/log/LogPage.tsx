import { Button, Group, Select, Text } from '@mantine/core';
import { useMemo } from 'react';
import { Link } from 'wouter';
import { cells } from '../../../parts/cells';
import type { Column } from '../../../parts/column';
import { EmptyState } from '../../../parts/EmptyState';
import { FilterText } from '../../../parts/FilterText';
import { PageHeader } from '../../../parts/PageHeader';
import { ProblemNote } from '../../../parts/ProblemNote';
import { ToneBadge } from '../../../parts/ToneBadge';
import { usePages } from '../../../parts/usePages';
import { useUrlParams } from '../../../parts/useUrlParams';
import { VirtualTable } from '../../../parts/VirtualTable';
import { formatDuration, instantOf } from '../../../time/format';
import { Timestamp } from '../../../time/Timestamp';
import { useViewerZone } from '../../../time/viewerZone';
import { addressOf, call } from '../../api/call';
import { useAccounts } from '../../api/queries';
import type { Account, LogItem } from '../../api/types';
import { usePolling } from '../../live/usePolling';
import { Glyph } from '../../parts/Glyph';
import { OUTCOME_OPTIONS, outcomeLabel, outcomeOf, outcomeTone } from '../../parts/outcomes';
import { addDays } from '../../when/dates';

const PARAMS = ['account', 'outcome', 'post', 'from', 'to'] as const;

/** Every attempt to publish. */
export default function LogPage() {
  const zone = useViewerZone();
  const [params, change] = useUrlParams(PARAMS);
  const { account, outcome, post } = params;
  const accounts = useAccounts();
  const byId = useMemo(() => new Map(accounts.data?.map((one) => [one.id, one])), [accounts.data]);
  const query = {
    account,
    outcome: outcomeOf(outcome),
    post,
    from: startOf(params.from, zone),
    to: startOf(params.to && addDays(params.to, 1), zone),
  };
  const { rows, error, refetch, hasNextPage, fetchNextPage, isFetching } = usePages<LogItem>({
    key: ['log', query],
    fetch: async (cursor, signal) => {
      const { items, next } = await call('GET /log', { query: { ...query, cursor }, signal });
      return { items, next_cursor: next };
    },
    refresh: usePolling(),
  });
  const columns = useMemo(() => columnsFor(byId), [byId]);
  return (
    <>
      <PageHeader
        title="Log"
        description="Every attempt to publish: when it was due, when it ran, and how it ended."
        actions={
          <Button
            component="a"
            href={addressOf('/log.csv', query)}
            download="momentum-log.csv"
            variant="default"
            leftSection={<Glyph name="download" />}
          >
            CSV
          </Button>
        }
      />
      <Group gap="xs" mb="sm">
        <Select
          placeholder="All accounts"
          aria-label="Account"
          data={accounts.data?.map(({ id, author }) => ({ value: id, label: author.name })) ?? []}
          value={account ?? null}
          onChange={(value) => change({ account: value ?? '' })}
          clearable
          searchable
          w={190}
        />
        <Select
          placeholder="All outcomes"
          aria-label="Outcome"
          data={OUTCOME_OPTIONS}
          value={outcome ?? null}
          onChange={(value) => change({ outcome: value ?? '' })}
          clearable
          w={170}
        />
        <FilterText
          type="date"
          aria-label="From"
          value={params.from ?? ''}
          onFilter={(from) => change({ from })}
        />
        <Text size="sm" c="dimmed">
          to
        </Text>
        <FilterText type="date" aria-label="To" value={params.to ?? ''} onFilter={(to) => change({ to })} />
        {post && (
          <Button variant="light" size="xs" onClick={() => change({ post: '' })}>
            One post only: show all
          </Button>
        )}
      </Group>
      {error !== null && <ProblemNote error={error} onRetry={() => void refetch()} />}
      {rows.length === 0 && !isFetching && error === null ? (
        <EmptyState icon="history" title="No attempts yet">
          When a post goes out, each attempt appears here, with its time and outcome.
        </EmptyState>
      ) : (
        <VirtualTable
          label="Attempts"
          rows={rows}
          columns={columns}
          rowId={rowId}
          rowName={rowName}
          href={hrefOf}
          onEnd={() => void fetchNextPage()}
          more={hasNextPage}
        />
      )}
    </>
  );
}

const rowId = (item: LogItem): string => item.id;
const rowName = (item: LogItem): string => `Attempt ${item.number} of ${item.post_id}`;
const hrefOf = (item: LogItem): string => `/posts/${item.post_id}`;

function startOf(date: string | undefined, zone: string): string | undefined {
  const at = date ? instantOf(`${date}T00:00`, zone) : null;
  return at === null ? undefined : new Date(at).toISOString();
}

function columnsFor(accounts: Map<string, Account>): ReadonlyArray<Column<LogItem>> {
  return [
    {
      name: 'Due',
      width: 'minmax(170px, 1.2fr)',
      narrow: 'minmax(0, 1fr)',
      cell: (item) => (
        <Link href={hrefOf(item)} className={cells.link}>
          <Timestamp at={item.scheduled_at} />
        </Link>
      ),
    },
    {
      name: 'Began',
      width: 'minmax(170px, 1.2fr)',
      wide: true,
      cell: (item) => (
        <>
          <Timestamp at={item.started_at} />
          <span className={cells.softLine}>{formatDuration(Math.max(0, item.lateness_ms))} late</span>
        </>
      ),
    },
    {
      name: 'Account',
      width: 'minmax(130px, 1fr)',
      wide: true,
      cell: (item) => <span className={cells.line}>{accounts.get(item.account_id)?.author.name ?? '–'}</span>,
    },
    {
      name: 'Outcome',
      width: '160px',
      narrow: '136px',
      cell: (item) => <ToneBadge tone={outcomeTone(item.outcome)}>{outcomeLabel(item.outcome)}</ToneBadge>,
    },
    {
      name: 'Error',
      width: 'minmax(160px, 2fr)',
      wide: true,
      cell: (item) => (
        <>
          <span className={cells.line} title={item.error ?? ''}>
            {item.error ?? '–'}
          </span>
          <span className={cells.softLine}>
            {[item.error_code, item.status && `HTTP ${item.status}`, item.worker].filter(Boolean).join(' · ')}
          </span>
        </>
      ),
    },
    { name: '#', width: '50px', narrow: '40px', cell: (item) => item.number },
  ];
}
