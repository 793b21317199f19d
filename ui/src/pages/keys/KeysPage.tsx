import { Alert, Box, Button, Paper, Table, Text } from '@mantine/core';
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
import { showError, showSuccess } from '../../parts/toasts';
import { usePages } from '../../parts/usePages';
import { useHasScope, useSession } from '../../session/sessionContext';
import { serverNow } from '../../time/clock';
import { Timestamp } from '../../time/Timestamp';
import { NewKeyDialog } from './NewKeyDialog';
import { SigningSecrets } from './SigningSecrets';

export default function KeysPage() {
  const isAdmin = useHasScope('admin');
  const { me } = useSession();
  const client = useQueryClient();
  const [creating, create] = useDisclosure(false);
  const [revoking, setRevoking] = useState<Key | null>(null);
  const list = usePages<Key>({
    key: ['keys'],
    fetch: (cursor, signal) =>
      call('GET /keys', { query: { limit: 200, ...(cursor && { cursor }) }, signal }),
    refresh: false,
  });
  const revoke = (key: Key) =>
    void call('DELETE /keys/{prefix}', { path: { prefix: key.prefix } })
      .then(() => showSuccess(`${key.name} revoked`), showError)
      .then(() => client.invalidateQueries({ queryKey: ['keys'] }));
  return (
    <>
      <PageHeader
        title="Keys"
        description="API keys and their scopes"
        actions={
          <Button leftSection={<Icon name="plus" />} disabled={!isAdmin} onClick={create.open}>
            New key
          </Button>
        }
      />
      {me.local && (
        <Alert color="gray" icon={<Icon name="help" />} mb="md">
          This server accepts only local connections and needs no key. Keys take effect when it is started
          with <code>--auth keys</code>.
        </Alert>
      )}
      {list.error !== null && <ProblemNote error={list.error} onRetry={() => void list.refetch()} />}
      {list.isSuccess && list.rows.length === 0 && (
        <EmptyState icon="key" title="No keys yet">
          A key has a tenant and scopes: read, submit, manage, admin, work. The key itself is shown only once,
          when you create it.
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
                  <Table.Th>Expires</Table.Th>
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
                      <Text size="xs" c="dimmed">
                        {key.queues.join(', ')}
                      </Text>
                    </Table.Td>
                    <Table.Td>
                      <StateBadge state={stateOf(key)} />
                    </Table.Td>
                    <Table.Td>
                      <Timestamp at={key.last_used_at} placeholder="never" />
                    </Table.Td>
                    <Table.Td>
                      <Timestamp at={key.expires_at} placeholder="never" />
                    </Table.Td>
                    <Table.Td ta="right">
                      <Button
                        size="xs"
                        variant="default"
                        c="var(--state-dead)"
                        disabled={!isAdmin || key.revoked_at !== null}
                        onClick={() => setRevoking(key)}
                        aria-label={`Revoke ${key.name}`}
                      >
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
      <Box mt="xl">
        <SigningSecrets />
      </Box>
      {creating && <NewKeyDialog onClose={create.close} />}
      {revoking !== null && (
        <ConfirmDialog
          title={`Revoke ${revoking.name}`}
          verb="Revoke"
          onClose={() => setRevoking(null)}
          onConfirm={() => revoke(revoking)}
        >
          Requests with this key are rejected within seconds. You cannot undo this.
        </ConfirmDialog>
      )}
    </>
  );
}

function stateOf(key: Key): 'revoked' | 'expired' | 'active' {
  if (key.revoked_at !== null) return 'revoked';
  return key.expires_at !== null && Date.parse(key.expires_at) < serverNow() ? 'expired' : 'active';
}
