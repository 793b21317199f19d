import { Paper, Table, Text, Title } from '@mantine/core';
import type { Lease } from '../../api/types';
import { plural } from '../../parts/plural';
import { Timestamp } from '../../time/Timestamp';

interface Row {
  lease: string;
  holder: number | null;
  until: string | null;
}

/** Leases that share a row for each holder: the beginning of their names, and what one of them is. */
const SEGMENTS = { 'segment/': 'schedule segment', 'dispatch/': 'dispatch segment' };

/** The holder of each lease. The segments of one kind and holder share a row. */
export function LeaseTable({ leases, nameOf }: { leases: Lease[]; nameOf: (node: number | null) => string }) {
  const kinds = Object.entries(SEGMENTS);
  const rows = [
    ...leases
      .filter((lease) => !kinds.some(([prefix]) => lease.name.startsWith(prefix)))
      .map((lease) => ({ lease: lease.name, holder: lease.holder, until: lease.expires_at })),
    ...kinds.flatMap(([prefix, noun]) => segments(leases, prefix, noun)),
  ];
  return (
    <Paper withBorder p="lg">
      <Title order={2} size="h5" mb={4}>
        Leases
      </Title>
      <Text size="sm" c="dimmed" mb="sm">
        The leader does the maintenance. Planners share the schedules, dispatchers the jobs. When a lease
        expires, another node takes it.
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
              <Table.Tr key={`${row.lease} ${row.holder}`}>
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

function segments(leases: Lease[], prefix: string, noun: string): Row[] {
  const byHolder = Map.groupBy(
    leases.filter((lease) => lease.name.startsWith(prefix)),
    (lease) => lease.holder,
  );
  return [...byHolder].map(([holder, held]) => ({
    lease: `${plural(held.length, noun)}: ${formatRanges(held.map((lease) => Number(lease.name.slice(prefix.length))))}`,
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
