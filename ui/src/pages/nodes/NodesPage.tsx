import { Badge, Group, Paper, Skeleton, Stack, Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { call } from '../../api/call';
import type { Node } from '../../api/types';
import { useRefresh } from '../../live/liveContext';
import { EmptyState } from '../../parts/EmptyState';

import { PageHeader } from '../../parts/PageHeader';
import { ProblemNote } from '../../parts/ProblemNote';
import { StateBadge } from '../../parts/StateBadge';
import { aliveFirst } from '../../parts/aliveFirst';
import { useNodes } from '../../parts/useNodes';
import { Timestamp } from '../../time/Timestamp';
import { BrokerNote } from './BrokerNote';
import { LeaseTable } from './LeaseTable';

export default function NodesPage() {
  const refresh = useRefresh(5_000);
  const nodes = useNodes();
  const leases = useQuery({
    queryKey: ['leases'],
    queryFn: ({ signal }) => call('GET /leases', { signal }),
    refetchInterval: refresh,
  });
  const leader = leases.data?.items.find((lease) => lease.name === 'leader')?.holder ?? null;
  const failed = nodes.error ?? leases.error;
  const withBroker = nodes.nodes?.some((node) => node.broker !== null) ?? false;
  return (
    <>
      <PageHeader title="Nodes" description="Processes that plan schedules and run jobs, and their leases" />
      <Stack gap="md">
        {failed !== null && <ProblemNote error={failed} onRetry={() => void nodes.refetch()} />}
        {nodes.data === undefined && failed === null && <Skeleton height={160} />}
        {nodes.data?.items.length === 0 && (
          <EmptyState icon="node" title="No nodes are running">
            Jobs wait until a node starts. Start one with <code>duetime serve</code>.
          </EmptyState>
        )}
        {nodes.data && nodes.data.items.length > 0 && (
          <Paper withBorder>
            <Table.ScrollContainer minWidth={820}>
              <Table aria-label="Nodes">
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>Node</Table.Th>
                    <Table.Th>State</Table.Th>
                    <Table.Th>Roles</Table.Th>
                    {withBroker && <Table.Th>Broker</Table.Th>}
                    <Table.Th ta="right">Running</Table.Th>
                    <Table.Th>Started</Table.Th>
                    <Table.Th>Lease expires</Table.Th>
                    <Table.Th>Version</Table.Th>
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {aliveFirst(nodes.data.items).map((node) => (
                    <NodeRow
                      key={node.id}
                      node={node}
                      isLeader={node.id === leader}
                      withBroker={withBroker}
                    />
                  ))}
                </Table.Tbody>
              </Table>
            </Table.ScrollContainer>
          </Paper>
        )}
        <BrokerNote />
        {leases.data && <LeaseTable leases={leases.data.items} nameOf={nodes.nameOf} />}
      </Stack>
    </>
  );
}

interface NodeRowProps {
  node: Node;
  isLeader: boolean;
  withBroker: boolean;
}

function NodeRow({ node, isLeader, withBroker }: NodeRowProps) {
  return (
    <Table.Tr>
      <Table.Td>
        <Group gap="xs">
          <Text size="sm" fw={550}>
            {node.name}
          </Text>
          {isLeader && (
            <Badge size="sm" variant="light" tt="none" flex="none">
              leader
            </Badge>
          )}
        </Group>
        <Text size="xs" c="dimmed">
          node {node.id}
        </Text>
        {node.lacks.length > 0 && (
          <Text size="xs" c="dimmed">
            May do less than other workers: it lacks {node.lacks.join(', ')}
          </Text>
        )}
      </Table.Td>
      <Table.Td>
        <StateBadge state={node.state} />
      </Table.Td>
      <Table.Td>
        <Text size="sm">{node.roles.join(', ')}</Text>
      </Table.Td>
      {withBroker && (
        <Table.Td>
          <Text size="sm">{node.broker ?? 'none'}</Text>
        </Table.Td>
      )}
      <Table.Td ta="right" className="tabular">
        {node.running}
      </Table.Td>
      <Table.Td>
        <Timestamp at={node.started_at} show="both" />
      </Table.Td>
      <Table.Td>
        <Timestamp at={node.lease_until} />
      </Table.Td>
      <Table.Td>
        <Text size="sm">{node.version}</Text>
      </Table.Td>
    </Table.Tr>
  );
}
