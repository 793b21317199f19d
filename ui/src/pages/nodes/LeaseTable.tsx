import { Paper, Table, Text, Title } from '@mantine/core';
import type { Lease } from '../../api/types';
import { plural } from '../../parts/plural';
import { Timestamp } from '../../time/Timestamp';

interface Row {
  lease: string;
  holder: number | null;
  until: string | null;
}

const SEGMENT = 'segment/';

/** The holder of each lease. The segments of one holder share a row. */
export function LeaseTable({ leases, nameOf }: { leases: Lease[]; nameOf: (node: number | null) => string }) {
  const rows = [...singles(leases), ...segments(leases)];
  return (
    <Paper withBorder p="lg">
      <Title order={2} size="h5" mb={4}>
        Leases
      </Title>
      <Text size="sm" c="dimmed" mb="sm">
        The leader does the maintenance. Schedules are divided into segments. When a lease expires, another
        node takes it.
      </Text>
      <Table.ScrollContainer minWidth={280}>
        <Table aria-label="Leases" horizontalSpacing="xs">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Lease</Table.Th>
              <Table.Th>Holder</Table.Th>
              <Table.Th>Expires</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {rows.map((row) => (
              <Table.Tr key={row.lease}>
                <Table.Td>{row.lease}</Table.Td>
                <Table.Td>{nameOf(row.holder)}</Table.Td>
                <Table.Td>
                  <Timestamp at={row.until} />
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Paper>
  );
}

function singles(leases: Lease[]): Row[] {
  return leases
    .filter((lease) => !lease.name.startsWith(SEGMENT))
    .map((lease) => ({ lease: lease.name, holder: lease.holder, until: lease.expires_at }));
}

function segments(leases: Lease[]): Row[] {
  const byHolder = Map.groupBy(
    leases.filter((lease) => lease.name.startsWith(SEGMENT)),
    (lease) => lease.holder,
  );
  return [...byHolder].map(([holder, held]) => ({
    lease: `${plural(held.length, 'segment')}: ${formatRanges(held.map((lease) => Number(lease.name.slice(SEGMENT.length))))}`,
    holder,
    until: held.map((lease) => lease.expires_at).toSorted()[0] ?? null,
  }));
}

/** [0, 1, 2, 5] becomes "0–2, 5". */
function formatRanges(numbers: number[]): string {
  const runs: Array<[first: number, last: number]> = [];
  for (const number of numbers.toSorted((a, b) => a - b)) {
    const run = runs.at(-1);
    if (run && run[1] === number - 1) run[1] = number;
    else runs.push([number, number]);
  }
  return runs.map(([first, last]) => (first === last ? `${first}` : `${first}–${last}`)).join(', ');
}
