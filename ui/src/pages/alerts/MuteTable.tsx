import { Group, Table, Text } from '@mantine/core';
import { call } from '../../api/call';
import type { AlertMute } from '../../api/types';
import { useAction } from '../../parts/useAction';
import { Timestamp } from '../../time/Timestamp';
import { AlertSection } from './AlertSection';
import { conditionLabel } from './conditions';
import { RowButton } from './RowButton';

export function MuteTable({ mutes }: { mutes: AlertMute[] }) {
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
              {mute.condition ? conditionLabel(mute.condition) : 'all conditions'}
            </Text>
          </Table.Td>
          <Table.Td data-label="Start">
            <Timestamp at={mute.start} />
          </Table.Td>
          <Table.Td data-label="Until">
            <Timestamp at={mute.until} />
          </Table.Td>
          <Table.Td data-label="Reason">
            <Text size="sm">{[mute.note, mute.author].filter(Boolean).join(', ')}</Text>
          </Table.Td>
          <Table.Td>
            <Group justify="flex-end">
              <RowButton
                verb="End"
                subject={`mute of ${mute.subject ?? 'all alerts'}`}
                onClick={() =>
                  act(() => call('DELETE /alerts/mutes/{mute_id}', { path: { mute_id: mute.id } }), 'Ended')
                }
              />
            </Group>
          </Table.Td>
        </Table.Tr>
      ))}
    </AlertSection>
  );
}
