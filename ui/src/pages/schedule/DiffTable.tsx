import { Table, Text } from '@mantine/core';
import type { Plan } from '../../api/types';
import classes from './DiffTable.module.css';

const format = (value: unknown): string =>
  value == null ? 'none' : typeof value === 'string' ? value : JSON.stringify(value, null, 1);

interface DiffTableProps {
  diff: Plan['diff'];
  columns?: readonly [before: string, after: string];
}

export function DiffTable({ diff, columns = ['Before', 'After'] }: DiffTableProps) {
  if (diff.length === 0)
    return (
      <Text size="sm" c="dimmed">
        No changes.
      </Text>
    );
  return (
    <Table.ScrollContainer minWidth={480}>
      <Table withTableBorder className={classes.root} aria-label="Changes">
        <Table.Thead>
          <Table.Tr>
            <Table.Th w={130}>Field</Table.Th>
            <Table.Th>{columns[0]}</Table.Th>
            <Table.Th>{columns[1]}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {diff.map((change) => (
            <Table.Tr key={change.field}>
              <Table.Td>{change.field}</Table.Td>
              <Table.Td className={classes.before}>{format(change.before)}</Table.Td>
              <Table.Td className={classes.after}>{format(change.after)}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
