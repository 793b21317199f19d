import { Anchor, Button, Group, Switch, Table, Text } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import { call } from '../../api/call';
import type { AlertChannel } from '../../api/types';
import { ConfirmDialog } from '../../parts/ConfirmDialog';
import { Icon } from '../../parts/Icon';
import { useAction } from '../../parts/useAction';
import { useHasScope } from '../../session/sessionContext';
import { AlertSection } from './AlertSection';
import { bodyOfChannel, describeQuiet, describeSettings, draftOfChannel } from './channelDraft';
import { CHANNEL_KINDS } from './channelKinds';
import { RowButton } from './RowButton';
import { TestOutcome } from './TestOutcome';
import { useChannelTest } from './useChannelTest';

interface ChannelTableProps {
  channels: AlertChannel[];
  onNew: () => void;
  onEdit: (channel: AlertChannel) => void;
}

export function ChannelTable({ channels, onNew, onEdit }: ChannelTableProps) {
  const canManage = useHasScope('manage');
  const act = useAction();
  const { test, testing, result } = useChannelTest();
  const [removing, setRemoving] = useState<AlertChannel | null>(null);
  const set = (channel: AlertChannel, enabled: boolean) =>
    act(
      () =>
        call('PUT /alerts/channels/{channel}', {
          path: { channel: channel.name },
          body: bodyOfChannel({ ...draftOfChannel(channel), enabled }),
          ifMatch: channel.version,
        }),
      `${channel.name} is ${enabled ? 'on' : 'off'}`,
    );
  return (
    <>
      <AlertSection
        title="Channels"
        description={
          <>
            Where notices go. Each notice is a job:{' '}
            <Anchor component={Link} href="/jobs?queue=duetime-alerts" size="sm" underline="always">
              deliveries
            </Anchor>
          </>
        }
        actions={
          <Button variant="default" leftSection={<Icon name="plus" />} disabled={!canManage} onClick={onNew}>
            New channel
          </Button>
        }
        empty="No channel yet."
        columns={['Name', 'Settings', 'Quiet', 'On', 'Actions']}
        isEmpty={channels.length === 0}
      >
        {channels.map((channel) => (
          <Table.Tr key={channel.name}>
            <Table.Td>
              <Text size="sm" fw={550}>
                {channel.name}
              </Text>
              <Text size="xs" c="dimmed">
                {CHANNEL_KINDS[channel.type].label}
              </Text>
            </Table.Td>
            <Table.Td>
              <Text size="sm">{describeSettings(channel)}</Text>
              {result?.channel === channel.name && <TestOutcome result={result} />}
            </Table.Td>
            <Table.Td data-label="Quiet">
              {draftOfChannel(channel).quiet.map((time) => (
                <Text size="sm" key={describeQuiet(time)}>
                  {describeQuiet(time)}
                </Text>
              ))}
            </Table.Td>
            <Table.Td data-label="On">
              <Switch
                checked={channel.enabled}
                disabled={!canManage}
                aria-label={`Channel ${channel.name}`}
                onChange={(event) => set(channel, event.currentTarget.checked)}
              />
            </Table.Td>
            <Table.Td>
              <Group gap="xs" wrap="nowrap" justify="flex-end">
                <RowButton
                  verb="Test"
                  subject={channel.name}
                  isPending={testing === channel.name}
                  onClick={() => test(channel.name)}
                />
                <RowButton verb="Edit" subject={`channel ${channel.name}`} onClick={() => onEdit(channel)} />
                <RowButton
                  verb="Remove"
                  subject={`channel ${channel.name}`}
                  isDangerous
                  onClick={() => setRemoving(channel)}
                />
              </Group>
            </Table.Td>
          </Table.Tr>
        ))}
      </AlertSection>
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
          It is told nothing more, and its secrets are deleted.
          {channels.length === 1 && ' It is the last channel: without one nothing is watched.'}
        </ConfirmDialog>
      )}
    </>
  );
}
