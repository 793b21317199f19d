import { Group, Paper, Stack, Table, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import classes from './AlertSection.module.css';

interface AlertSectionProps {
  title: string;
  description?: ReactNode;
  actions?: ReactNode;
  columns: readonly string[];
  empty: string;
  isEmpty: boolean;
  children: ReactNode;
}

/** A table with its heading and the buttons for all of its rows. */
export function AlertSection({
  title,
  description,
  actions,
  columns,
  empty,
  isEmpty,
  children,
}: AlertSectionProps) {
  return (
    <Stack gap="xs" component="section" aria-label={title}>
      <Group justify="space-between" align="flex-end" gap="xs">
        <div>
          <Title order={2} size="h4">
            {title}
          </Title>
          {description && (
            <Text size="sm" c="dimmed" component="div">
              {description}
            </Text>
          )}
        </div>
        {actions}
      </Group>
      {isEmpty ? (
        <Text size="sm" c="dimmed">
          {empty}
        </Text>
      ) : (
        <Paper withBorder>
          <Table.ScrollContainer minWidth={0}>
            <Table aria-label={title} className={classes.table}>
              <Table.Thead>
                <Table.Tr>
                  {columns.map((column) => (
                    <Table.Th key={column} aria-label={column}>
                      {column === 'Actions' ? '' : column}
                    </Table.Th>
                  ))}
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>{children}</Table.Tbody>
            </Table>
          </Table.ScrollContainer>
        </Paper>
      )}
    </Stack>
  );
}
