import { Anchor, Group, Table, Text } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import { call } from '../../api/call';
import type { AlertRow } from '../../api/types';
import { ToneBadge } from '../../parts/ToneBadge';
import { useAction } from '../../parts/useAction';
import { Timestamp } from '../../time/Timestamp';
import { AlertSection } from './AlertSection';
import { conditionLabel } from './conditions';
import { MuteDialog } from './MuteDialog';
import { RowButton } from './RowButton';

interface AlertTableProps {
  title: string;
  alerts: AlertRow[];
  isOpen?: boolean;
}

export function AlertTable({ title, alerts, isOpen = false }: AlertTableProps) {
  const act = useAction();
  const [snoozing, setSnoozing] = useState<AlertRow | null>(null);
  const close = (alert: AlertRow) =>
    act(
      () => call('POST /alerts/{alert_id}/close', { path: { alert_id: alert.id } }),
      `${alert.subject} closed. It opens again if it is still wrong`,
    );
  return (
    <>
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
                {conditionLabel(alert.condition)}
              </ToneBadge>
            </Table.Td>
            <Table.Td>
              <Anchor component={Link} href={placeOf(alert)} size="sm" fw={550} c="var(--mantine-color-text)">
                {alert.subject}
              </Anchor>
              <Text size="xs" c="dimmed" lineClamp={2}>
                {alert.text}
              </Text>
            </Table.Td>
            <Table.Td data-label="Since">
              <Timestamp at={alert.since} />
            </Table.Td>
            <Table.Td data-label={isOpen ? 'Told' : 'Ended'}>
              {isOpen ? <Told alert={alert} /> : <Timestamp at={alert.closed_at} />}
            </Table.Td>
            <Table.Td {...(!isOpen && { 'data-label': 'Why' })}>
              {isOpen ? (
                <Group gap="xs" wrap="nowrap" justify="flex-end">
                  <RowButton verb="Snooze" subject={alert.subject} onClick={() => setSnoozing(alert)} />
                  <RowButton verb="Close" subject={alert.subject} onClick={() => close(alert)} />
                </Group>
              ) : (
                <Text size="sm">{alert.closed}</Text>
              )}
            </Table.Td>
          </Table.Tr>
        ))}
      </AlertSection>
      {snoozing !== null && <MuteDialog alert={snoozing} onClose={() => setSnoozing(null)} />}
    </>
  );
}

/** The page where the cause can be seen. */
function placeOf({ condition, subject }: AlertRow): string {
  switch (condition) {
    case 'silent':
      return `/schedules/${encodeURIComponent(subject)}`;
    case 'failing':
    case 'dead_letters':
      return '/dead';
    case 'queue_lag':
      return `/jobs?queue=${encodeURIComponent(subject)}`;
    case 'late':
      return '/jobs?state=pending';
    default:
      return '/nodes';
  }
}

function toneOf({ severity }: AlertRow): string {
  if (severity === 'info') return 'pending';
  return severity === 'critical' ? 'dead' : 'retrying';
}

function Told({ alert }: { alert: AlertRow }) {
  return (
    <>
      <Text size="sm">{alert.told.join(', ') || (alert.muted_until === null ? 'not yet' : 'muted')}</Text>
      {alert.muted_until !== null && (
        <Text size="xs" c="dimmed" component="div">
          snoozed until <Timestamp at={alert.muted_until} />
        </Text>
      )}
    </>
  );
}
