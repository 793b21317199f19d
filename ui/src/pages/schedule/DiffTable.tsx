import { Table, Text } from '@mantine/core';
import type { Plan } from '../../api/types';
import classes from './DiffTable.module.css';

const shown = (value: unknown): string => (value == null ? 'none' : typeof value === 'string' ? value : JSON.stringify(value, null, 1));

export function DiffTable({ diff }: { diff: Plan['diff'] }) {
  if (diff.length === 0) return <Text size="sm" c="dimmed">Nothing differs.</Text>;
  return (
    <Table.ScrollContainer minWidth={480}>
      <Table withTableBorder className={classes.root} aria-label="What differs">
        <Table.Thead>
          <Table.Tr>
            <Table.Th w={130}>Field</Table.Th>
            <Table.Th>Before</Table.Th>
            <Table.Th>After</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {diff.map((one) => (
            <Table.Tr key={one.field}>
              <Table.Td>{one.field}</Table.Td>
              <Table.Td className={classes.before}>{shown(one.before)}</Table.Td>
              <Table.Td className={classes.after}>{shown(one.after)}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
