import { Button, Group, Table, Text } from '@mantine/core';
import { useState } from 'react';
import { call } from '../../api/call';
import type { AlertChannel } from '../../api/types';
import { ConfirmDialog } from '../../parts/ConfirmDialog';
import { ToneBadge } from '../../parts/ToneBadge';
import { useAction } from '../../parts/useAction';
import { useHasScope } from '../../session/sessionContext';
import { AlertSection } from './AlertSection';

export function ChannelTable({ channels }: { channels: AlertChannel[] }) {
  const canManage = useHasScope('manage');
  const act = useAction();
  const [removing, setRemoving] = useState<AlertChannel | null>(null);
  return (
    <AlertSection
      title="Channels"
      empty="No channel yet."
      columns={['Name', 'Settings', 'Quiet', 'State', 'Actions']}
      isEmpty={channels.length === 0}
    >
      {channels.map((channel) => (
        <Table.Tr key={channel.name}>
          <Table.Td>
            <Text size="sm" fw={550}>
              {channel.name}
            </Text>
            <Text size="xs" c="dimmed">
              {channel.type}
            </Text>
          </Table.Td>
          <Table.Td>
            <Text size="sm">{settingsText(channel)}</Text>
          </Table.Td>
          <Table.Td>
            <Text size="sm">{quietText(channel)}</Text>
          </Table.Td>
          <Table.Td>
            <ToneBadge tone={channel.enabled ? 'succeeded' : 'skipped'}>
              {channel.enabled ? 'on' : 'off'}
            </ToneBadge>
          </Table.Td>
          <Table.Td>
            <Group gap="xs" wrap="nowrap">
              <Button
                size="xs"
                variant="default"
                disabled={!canManage}
                aria-label={`Test ${channel.name}`}
                onClick={() =>
                  act(
                    () => call('POST /alerts/channels/{channel}/test', { path: { channel: channel.name } }),
                    `Test notice on its way to ${channel.name}`,
                  )
                }
              >
                Test
              </Button>
              <Button
                size="xs"
                variant="default"
                c="var(--state-dead)"
                disabled={!canManage}
                aria-label={`Remove ${channel.name}`}
                onClick={() => setRemoving(channel)}
              >
                Remove
              </Button>
            </Group>
          </Table.Td>
        </Table.Tr>
      ))}
      {removing !== null && (
        <ConfirmDialog
          title={`Remove ${removing.name}`}
          verb="Remove"
          onClose={() => setRemoving(null)}
          onConfirm={() =>
            act(
              () => call('DELETE /alerts/channels/{channel}', { path: { channel: removing.name } }),
              `${removing.name} removed`,
            )
          }
        >
          It is told nothing more. Without any channel nothing is watched.
        </ConfirmDialog>
      )}
    </AlertSection>
  );
}

function settingsText(channel: AlertChannel): string {
  const shown = Object.entries(channel.settings).map(([name, value]) => `${name}: ${String(value)}`);
  return [...shown, ...channel.secrets.map((name) => `${name}: set`)].join(', ');
}

function quietText(channel: AlertChannel): string {
  return channel.quiet
    .map((time) => `${String(time['start'])}–${String(time['end'])} ${String(time['tz'])}`)
    .join(', ');
}
