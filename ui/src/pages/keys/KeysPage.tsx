import { Alert, Button, Paper, Table, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { call } from '../../api/call';
import type { Key } from '../../api/types';
import { ConfirmDialog } from '../../parts/ConfirmDialog';
import { CopyText } from '../../parts/CopyText';
import { EmptyState } from '../../parts/EmptyState';
import { Icon } from '../../parts/Icon';
import { PageHeader } from '../../parts/PageHeader';
import { ProblemNote } from '../../parts/ProblemNote';
import { StateBadge } from '../../parts/StateBadge';
import { complain, say } from '../../parts/toasts';
import { usePages } from '../../parts/usePages';
import { useMay, useSession } from '../../session/sessionContext';
import { serverNow } from '../../time/clock';
import { Moment } from '../../time/Moment';
import { NewKeyDialog } from './NewKeyDialog';

export default function KeysPage() {
  const may = useMay('admin');
  const { me } = useSession();
  const client = useQueryClient();
  const [making, make] = useDisclosure(false);
  const [revoking, setRevoking] = useState<Key | null>(null);
  const list = usePages<Key>({ key: ['keys'], fetch: (cursor, signal) => call('GET /keys', { query: { limit: 200, ...(cursor && { cursor }) }, signal }), refresh: false });
  const revoke = (key: Key) =>
    void call('DELETE /keys/{prefix}', { path: { prefix: key.prefix } })
      .then(() => say(`${key.name} is revoked`), complain)
      .then(() => client.invalidateQueries({ queryKey: ['keys'] }));
  return (
    <>
      <PageHeader
        title="Keys"
        about="Who may use the API, and for what"
        actions={
          <Button leftSection={<Icon name="plus" />} disabled={!may} onClick={make.open}>
            New key
          </Button>
        }
      />
      {me.local && (
        <Alert color="gray" icon={<Icon name="help" />} mb="md">
          This server listens on this machine only and asks for no key. Keys made here count once it is started with <code>--auth keys</code>.
        </Alert>
      )}
      {list.error !== null && <ProblemNote error={list.error} onRetry={() => void list.refetch()} />}
      {list.isSuccess && list.rows.length === 0 && (
        <EmptyState icon="key" title="No keys yet">
          A key carries a tenant and scopes: read, submit, manage, admin. Its secret is shown once, when it is made.
        </EmptyState>
      )}
      {list.rows.length > 0 && (
        <Paper withBorder>
          <Table.ScrollContainer minWidth={720}>
            <Table aria-label="Keys">
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>Name</Table.Th>
                  <Table.Th>Key</Table.Th>
                  <Table.Th>Scopes</Table.Th>
                  <Table.Th>State</Table.Th>
                  <Table.Th>Last used</Table.Th>
                  <Table.Th>Ends</Table.Th>
                  <Table.Th aria-label="Actions" />
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {list.rows.map((key) => (
                  <Table.Tr key={key.prefix}>
                    <Table.Td>
                      <Text size="sm" fw={550}>
                        {key.name}
                      </Text>
                      <Text size="xs" c="dimmed">
                        {[`tenant ${key.tenant}`, key.rate].filter(Boolean).join(', ')}
                      </Text>
                    </Table.Td>
                    <Table.Td>
                      <CopyText text={key.prefix} label="Copy prefix" />
                    </Table.Td>
                    <Table.Td>
                      <Text size="sm">{key.scopes.join(', ')}</Text>
                    </Table.Td>
                    <Table.Td>
                      <StateBadge state={stateOf(key)} />
                    </Table.Td>
                    <Table.Td>
                      <Moment at={key.last_used_at} absent="never" />
                    </Table.Td>
                    <Table.Td>
                      <Moment at={key.expires_at} absent="never" />
                    </Table.Td>
                    <Table.Td ta="right">
                      <Button size="xs" variant="default" c="var(--state-dead)" disabled={!may || key.revoked_at !== null} onClick={() => setRevoking(key)} aria-label={`Revoke ${key.name}`}>
                        Revoke
                      </Button>
                    </Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </Table.ScrollContainer>
        </Paper>
      )}
      {making && <NewKeyDialog onClose={make.close} />}
      {revoking !== null && (
        <ConfirmDialog title={`Revoke ${revoking.name}`} verb="Revoke" onClose={() => setRevoking(null)} onConfirm={() => revoke(revoking)}>
          Whoever uses this key is refused within seconds. It cannot be undone.
        </ConfirmDialog>
      )}
    </>
  );
}

function stateOf(key: Key): 'revoked' | 'expired' | 'active' {
  if (key.revoked_at !== null) return 'revoked';
  return key.expires_at !== null && Date.parse(key.expires_at) < serverNow() ? 'expired' : 'active';
}
