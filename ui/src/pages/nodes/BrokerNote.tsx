import { Paper, Table, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { call } from '../../api/call';
import { useRefresh } from '../../live/liveContext';

/** The broker as the service sees it. Nothing if the service has none, or for a key of another tenant. */
export function BrokerNote() {
  const { data } = useQuery({
    queryKey: ['broker'],
    queryFn: ({ signal }) => call('GET /broker', { signal }),
    refetchInterval: useRefresh(5_000),
  });
  if (data === undefined || data.address === null) return null;
  return (
    <Paper withBorder p="lg" component="section" aria-label="Broker">
      <Title order={2} size="h5" mb={4}>
        Broker
      </Title>
      <Text size="sm" c="dimmed" mb="sm">
        {data.address}: {data.remark ?? (data.depth.length === 0 ? 'answers, no messages' : 'answers')}
      </Text>
      {data.depth.length > 0 && (
        <Table.ScrollContainer minWidth={280}>
          <Table aria-label="Messages in the broker" horizontalSpacing="xs">
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Queue</Table.Th>
                <Table.Th ta="right">Priority up to</Table.Th>
                <Table.Th ta="right">Messages</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {data.depth.map((one) => (
                <Table.Tr key={`${one.priority} ${one.queue}`}>
                  <Table.Td>{one.queue}</Table.Td>
                  <Table.Td ta="right" className="tabular">
                    {one.priority}
                  </Table.Td>
                  <Table.Td ta="right" className="tabular">
                    {one.messages.toLocaleString('en')}
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </Table.ScrollContainer>
      )}
    </Paper>
  );
}
