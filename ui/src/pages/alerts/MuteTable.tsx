import { Button, Table, Text } from '@mantine/core';
import { call } from '../../api/call';
import type { AlertMute } from '../../api/types';
import { useAction } from '../../parts/useAction';
import { useHasScope } from '../../session/sessionContext';
import { Timestamp } from '../../time/Timestamp';
import { AlertSection } from './AlertSection';

export function MuteTable({ mutes }: { mutes: AlertMute[] }) {
  const canManage = useHasScope('manage');
  const act = useAction();
  return (
    <AlertSection
      title="Muted"
      empty="Nothing is muted."
      columns={['What', 'Start', 'Until', 'Reason', 'Actions']}
      isEmpty={mutes.length === 0}
    >
      {mutes.map((mute) => (
        <Table.Tr key={mute.id}>
          <Table.Td>
            <Text size="sm" fw={550}>
              {mute.subject ?? 'all alerts'}
            </Text>
            <Text size="xs" c="dimmed">
              {mute.condition?.replace('_', ' ') ?? ''}
            </Text>
          </Table.Td>
          <Table.Td>
            <Timestamp at={mute.start} />
          </Table.Td>
          <Table.Td>
            <Timestamp at={mute.until} />
          </Table.Td>
          <Table.Td>
            <Text size="sm">{[mute.note, mute.author].filter(Boolean).join(', ')}</Text>
          </Table.Td>
          <Table.Td>
            <Button
              size="xs"
              variant="default"
              disabled={!canManage}
              aria-label={`End mute of ${mute.subject ?? 'all alerts'}`}
              onClick={() =>
                act(() => call('DELETE /alerts/mutes/{mute_id}', { path: { mute_id: mute.id } }), 'Ended')
              }
            >
              End now
            </Button>
          </Table.Td>
        </Table.Tr>
      ))}
    </AlertSection>
  );
}
