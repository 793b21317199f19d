import { Button, SimpleGrid, Skeleton, Stack } from '@mantine/core';
import { Link } from 'wouter';
import { EmptyState } from '../../../parts/EmptyState';
import { Icon } from '../../../parts/Icon';
import { PageHeader } from '../../../parts/PageHeader';
import { ProblemNote } from '../../../parts/ProblemNote';
import { useUrlParams } from '../../../parts/useUrlParams';
import { connected, useAccounts, usePlatforms } from '../../api/queries';
import { Note } from '../../parts/Note';
import { sentence } from '../../text/sentence';
import { AccountCard } from './AccountCard';
import { ConnectDialog } from './ConnectDialog';

const PARAMS = ['connect', 'connected', 'problem', 'detail'] as const;
const REASONS: Record<string, string> = {
  not_granted: 'The access was not granted at the platform. Connect again and allow it.',
};

export default function AccountsPage() {
  const platforms = usePlatforms();
  const { data, error, refetch } = useAccounts();
  const [params, change] = useUrlParams(PARAMS);
  const accounts = connected(data);
  const notices = platforms.flatMap(({ title, notices: all }) => all.map((text) => `${title}: ${text}`));
  const fresh = params.connected?.split(',') ?? [];
  const names = accounts.filter(({ id }) => fresh.includes(id)).map(({ author }) => author.name);
  const button = (
    <Button leftSection={<Icon name="plus" />} onClick={() => change({ connect: '1' })}>
      Connect an account
    </Button>
  );
  return (
    <>
      <PageHeader
        title="Accounts"
        description="Profiles and pages that Momentum may post for."
        actions={button}
      />
      <Stack>
        {params.problem && (
          <Note
            tone="bad"
            title="The account was not connected"
            onClose={() => change({ problem: '', detail: '' })}
          >
            {sentence(params.detail ?? REASONS[params.problem] ?? params.problem)}
          </Note>
        )}
        {names.length > 0 && (
          <Note
            tone="good"
            title={`Connected: ${names.join(', ')}`}
            onClose={() => change({ connected: '' })}
          >
            <Link href="/new">Write a post</Link>
          </Note>
        )}
        {notices.map((text) => (
          <Note key={text}>{sentence(text)}</Note>
        ))}
        {error !== null && <ProblemNote error={error} onRetry={() => void refetch()} />}
        {data === undefined && error === null && <Skeleton height={220} />}
        {data && accounts.length === 0 && (
          <EmptyState icon="user" title="No account yet" action={button}>
            Connect the profile or page that you want to post for. You can disconnect it at any time.
          </EmptyState>
        )}
        <SimpleGrid cols={{ base: 1, lg: 2 }}>
          {accounts.map((account) => (
            <AccountCard key={account.id} account={account} />
          ))}
        </SimpleGrid>
      </Stack>
      {params.connect && <ConnectDialog onClose={() => change({ connect: '' })} />}
    </>
  );
}
