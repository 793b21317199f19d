import { Button, Skeleton, Stack } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { call } from '../../api/call';
import type { AlertChannel } from '../../api/types';
import { useRefresh } from '../../live/liveContext';
import { EmptyState } from '../../parts/EmptyState';
import { Icon } from '../../parts/Icon';
import { PageHeader } from '../../parts/PageHeader';
import { ProblemNote } from '../../parts/ProblemNote';
import { useHasScope } from '../../session/sessionContext';
import { AlertTable } from './AlertTable';
import { ChannelDialog } from './ChannelDialog';
import { ChannelTable } from './ChannelTable';
import { MuteDialog } from './MuteDialog';
import { MuteTable } from './MuteTable';
import { RuleTable } from './RuleTable';

export default function AlertsPage() {
  const canManage = useHasScope('manage');
  const [editing, setEditing] = useState<AlertChannel | 'new' | null>(null);
  const [muting, mute] = useDisclosure(false);
  const { alerts, channels, rules, mutes, error, refetch } = useAlerts();
  const names = channels?.map((channel) => channel.name) ?? [];
  const open = alerts?.filter((alert) => alert.closed_at === null) ?? [];
  const over = alerts?.filter((alert) => alert.closed_at !== null) ?? [];
  return (
    <>
      <PageHeader
        title="Alerts"
        description="What is wrong, and who is told"
        actions={
          <Button variant="default" disabled={!canManage} onClick={mute.open}>
            Maintenance window
          </Button>
        }
      />
      {error !== null && <ProblemNote error={error} onRetry={refetch} />}
      {channels === undefined && error === null && <Skeleton height={160} />}
      <Stack gap="xl">
        {channels?.length === 0 && (
          <EmptyState
            icon="alert"
            title="No channel yet"
            action={
              <Button
                leftSection={<Icon name="plus" />}
                disabled={!canManage}
                onClick={() => setEditing('new')}
                mt="xs"
              >
                New channel
              </Button>
            }
          >
            Add a channel, such as an e-mail address or a Slack channel. It is told what the rules below say,
            and when it is well again. Nothing is watched before you do.
          </EmptyState>
        )}
        {(names.length > 0 || open.length > 0) && <AlertTable title="Open" alerts={open} isOpen />}
        {mutes !== undefined && mutes.length > 0 && <MuteTable mutes={mutes} />}
        {channels !== undefined && channels.length > 0 && (
          <ChannelTable channels={channels} onNew={() => setEditing('new')} onEdit={setEditing} />
        )}
        {rules && <RuleTable rules={rules} channels={names} />}
        {(names.length > 0 || over.length > 0) && <AlertTable title="Over" alerts={over} />}
      </Stack>
      {editing !== null && (
        <ChannelDialog
          {...(editing !== 'new' && { channel: editing })}
          names={names}
          onClose={() => setEditing(null)}
        />
      )}
      {muting && <MuteDialog onClose={mute.close} />}
    </>
  );
}

/** What the page shows; undefined while it is loaded. */
function useAlerts() {
  const refetchInterval = useRefresh(15_000);
  const alerts = useQuery({
    queryKey: ['alerts'],
    queryFn: ({ signal }) => call('GET /alerts', { query: { past: true, limit: 200 }, signal }),
    refetchInterval,
  });
  const channels = useQuery({
    queryKey: ['alerts', 'channels'],
    queryFn: ({ signal }) => call('GET /alerts/channels', { signal }),
  });
  const rules = useQuery({
    queryKey: ['alerts', 'rules'],
    queryFn: ({ signal }) => call('GET /alerts/rules', { signal }),
  });
  const mutes = useQuery({
    queryKey: ['alerts', 'mutes'],
    queryFn: ({ signal }) => call('GET /alerts/mutes', { signal }),
    refetchInterval,
  });
  const queries = [alerts, channels, rules, mutes];
  return {
    alerts: alerts.data?.items,
    channels: channels.data?.items,
    rules: rules.data?.items,
    mutes: mutes.data?.items,
    error: queries.find((query) => query.error !== null)?.error ?? null,
    refetch: () => queries.forEach((query) => void query.refetch()),
  };
}
