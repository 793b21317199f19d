import { Badge, Button, Group, Paper, Progress, Stack, Switch, Text, Title } from '@mantine/core';
import { useState } from 'react';
import { ConfirmDialog } from '../../../parts/ConfirmDialog';
import { Icon } from '../../../parts/Icon';
import { plural } from '../../../parts/plural';
import { ToneBadge } from '../../../parts/ToneBadge';
import { useAction } from '../../../parts/useAction';
import { Timestamp } from '../../../time/Timestamp';
import { call } from '../../api/call';
import { usePlatformTitle } from '../../api/queries';
import type { Account } from '../../api/types';
import { AccountMark } from '../../parts/AccountMark';
import { Note } from '../../parts/Note';
import { connect } from './connect';
import { ProbeDialog } from './ProbeDialog';

export function AccountCard({ account }: { account: Account }) {
  const { author, state, usage, scopes } = account;
  const title = usePlatformTitle()(account.platform);
  const act = useAction();
  const [dialog, setDialog] = useState<'probe' | 'disconnect' | null>(null);
  const path = { account_id: account.id };
  const setProbe = (probe: boolean) =>
    act(
      () => call('PATCH /accounts/{account_id}', { path, body: { probe } }),
      probe ? 'Probe is on' : 'Probe is off',
    );
  const reconnect = () => act(() => connect(account.platform, account.server), `Opening ${title}`);
  const expired = state === 'expired';
  return (
    <Paper withBorder p="lg" component="section" aria-label={author.name}>
      <Stack gap="md">
        <Group justify="space-between" wrap="nowrap" align="flex-start">
          <Group wrap="nowrap" miw={0}>
            <AccountMark account={account} size={44} />
            <div>
              <Title order={2} size="h5">
                {author.name}
              </Title>
              <Text size="sm" c="dimmed">
                {title} {author.kind === 'organization' ? 'page' : 'profile'}
                {author.handle && ` · @${author.handle.replace(/^@/, '')}`}
              </Text>
            </div>
          </Group>
          <ToneBadge tone={expired ? 'dead' : account.expires_soon ? 'cancelled' : 'succeeded'}>
            {expired ? 'Expired' : account.expires_soon ? 'Expires soon' : 'Connected'}
          </ToneBadge>
        </Group>
        {(expired || account.expires_soon) && (
          <Note tone={expired ? 'bad' : 'warn'}>
            {expired ? 'Momentum may no longer post for this account.' : <Expiry account={account} />}
            {account.scheduled_after_expiry > 0 &&
              ` ${plural(account.scheduled_after_expiry, 'scheduled post')} would not go out.`}
          </Note>
        )}
        {!expired && !account.expires_soon && account.expires_at && (
          <Text size="sm">
            <Expiry account={account} />
          </Text>
        )}
        {usage.limit !== null && (
          <div>
            <Group justify="space-between">
              <Text size="sm">Requests to {title} today</Text>
              <Text size="sm" className="tabular">
                {usage.today.toLocaleString('en')} / {usage.limit.toLocaleString('en')}
              </Text>
            </Group>
            <Progress
              mt={4}
              value={(usage.today / usage.limit) * 100}
              color={usage.today / usage.limit > 0.9 ? 'red' : 'iris'}
              aria-label={`Requests of ${author.name} today`}
            />
          </div>
        )}
        <Group gap={6}>
          {scopes.map((scope) => (
            <Badge key={scope} variant="default" tt="none" fw={500} size="sm">
              {scope}
            </Badge>
          ))}
        </Group>
        {author.kind === 'member' && (
          <Switch
            label="Find out by sending again"
            description="When it is not known whether a post went out, send the identical post once more. Usually the platform then names the first one; rarely it shows the post twice."
            checked={account.probe}
            onChange={(event) => (event.currentTarget.checked ? setDialog('probe') : setProbe(false))}
          />
        )}
        <Group gap="xs">
          <Button
            variant={expired ? 'filled' : 'default'}
            onClick={reconnect}
            leftSection={<Icon name="retry" />}
          >
            Connect again
          </Button>
          {account.can_refresh && !expired && (
            <Button
              variant="default"
              onClick={() =>
                act(() => call('POST /accounts/{account_id}/refresh', { path }), 'Access extended')
              }
            >
              Extend access
            </Button>
          )}
          <Button variant="subtle" color="red" onClick={() => setDialog('disconnect')}>
            Disconnect
          </Button>
        </Group>
      </Stack>
      {dialog === 'probe' && (
        <ProbeDialog platform={title} onClose={() => setDialog(null)} onConfirm={() => setProbe(true)} />
      )}
      {dialog === 'disconnect' && (
        <ConfirmDialog
          title={`Disconnect ${author.name}?`}
          verb="Disconnect"
          onClose={() => setDialog(null)}
          onConfirm={() => act(() => call('DELETE /accounts/{account_id}', { path }), 'Account disconnected')}
        >
          Momentum gives its access back and forgets it. Scheduled posts of this account do not go out until
          you connect it again. Published posts stay.
        </ConfirmDialog>
      )}
    </Paper>
  );
}

function Expiry({ account }: { account: Account }) {
  return (
    <>
      Access ends <Timestamp at={account.expires_at} show="relative" />
      {account.can_refresh ? '; Momentum extends it before.' : '. Connect again before that.'}
    </>
  );
}
