import { Button, Group, Stack } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { call } from '../../api/call';
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
  const [adding, add] = useDisclosure(false);
  const [muting, mute] = useDisclosure(false);
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
  const error = alerts.error ?? channels.error ?? rules.error ?? mutes.error;
  const rows = alerts.data?.items ?? [];
  const hasChannel = (channels.data?.items.length ?? 0) > 0;
  return (
    <>
      <PageHeader
        title="Alerts"
        description="What is wrong, and who is told"
        actions={
          <Group gap="xs">
            <Button variant="default" disabled={!canManage || !hasChannel} onClick={mute.open}>
              Maintenance window
            </Button>
            <Button leftSection={<Icon name="plus" />} disabled={!canManage} onClick={add.open}>
              New channel
            </Button>
          </Group>
        }
      />
      {error !== null && <ProblemNote error={error} onRetry={() => void alerts.refetch()} />}
      {channels.isSuccess && !hasChannel && (
        <EmptyState icon="alert" title="No channel yet">
          Add a channel, and you are told when a schedule is silent, when jobs fail or wait, and when a node
          is lost. Nothing is watched before.
        </EmptyState>
      )}
      {hasChannel && (
        <Stack gap="xl">
          <AlertTable title="Open" alerts={rows.filter((row) => row.closed_at === null)} isOpen />
          {mutes.data && mutes.data.items.length > 0 && <MuteTable mutes={mutes.data.items} />}
          <ChannelTable channels={channels.data?.items ?? []} />
          <RuleTable rules={rules.data?.items ?? []} />
          <AlertTable title="Over" alerts={rows.filter((row) => row.closed_at !== null)} />
        </Stack>
      )}
      {adding && <ChannelDialog onClose={add.close} />}
      {muting && <MuteDialog onClose={mute.close} />}
    </>
  );
}
