import { Button, Group, Table, Text } from '@mantine/core';
import { call } from '../../api/call';
import type { AlertRow } from '../../api/types';
import { ToneBadge } from '../../parts/ToneBadge';
import { useAction } from '../../parts/useAction';
import { useHasScope } from '../../session/sessionContext';
import { Timestamp } from '../../time/Timestamp';
import { AlertSection } from './AlertSection';

interface AlertTableProps {
  title: string;
  alerts: AlertRow[];
  isOpen?: boolean;
}

export function AlertTable({ title, alerts, isOpen = false }: AlertTableProps) {
  const canManage = useHasScope('manage');
  const act = useAction();
  const snooze = (alert: AlertRow) =>
    act(
      () => call('POST /alerts/{alert_id}/snooze', { path: { alert_id: alert.id }, body: { for: '1h' } }),
      `${alert.subject} snoozed for an hour`,
    );
  const close = (alert: AlertRow) =>
    act(
      () => call('POST /alerts/{alert_id}/close', { path: { alert_id: alert.id } }),
      `${alert.subject} closed`,
    );
  return (
    <AlertSection
      title={title}
      empty={isOpen ? 'Nothing is wrong.' : 'No alert is over yet.'}
      columns={['Condition', 'Subject', 'Since', isOpen ? 'Told' : 'Ended', isOpen ? 'Actions' : 'Why']}
      isEmpty={alerts.length === 0}
    >
      {alerts.map((alert) => (
        <Table.Tr key={alert.id}>
          <Table.Td>
            <ToneBadge tone={isOpen ? toneOf(alert) : 'succeeded'}>
              {alert.condition.replace('_', ' ')}
            </ToneBadge>
          </Table.Td>
          <Table.Td>
            <Text size="sm" fw={550}>
              {alert.subject}
            </Text>
            <Text size="xs" c="dimmed">
              {alert.text}
            </Text>
          </Table.Td>
          <Table.Td>
            <Timestamp at={alert.since} />
          </Table.Td>
          <Table.Td>
            {isOpen ? <Text size="sm">{toldText(alert)}</Text> : <Timestamp at={alert.closed_at} />}
          </Table.Td>
          <Table.Td>
            {isOpen ? (
              <Group gap="xs" wrap="nowrap">
                <Button
                  size="xs"
                  variant="default"
                  disabled={!canManage}
                  onClick={() => snooze(alert)}
                  aria-label={`Snooze ${alert.subject}`}
                >
                  Snooze 1h
                </Button>
                <Button
                  size="xs"
                  variant="default"
                  disabled={!canManage}
                  onClick={() => close(alert)}
                  aria-label={`Close ${alert.subject}`}
                >
                  Close
                </Button>
              </Group>
            ) : (
              <Text size="sm">{alert.closed}</Text>
            )}
          </Table.Td>
        </Table.Tr>
      ))}
    </AlertSection>
  );
}

function toneOf(alert: AlertRow): string {
  return alert.severity === 'critical' ? 'dead' : 'retrying';
}

function toldText(alert: AlertRow): string {
  if (alert.told.length > 0) return alert.told.join(', ');
  return alert.muted_until === null ? 'not yet' : 'muted';
}
