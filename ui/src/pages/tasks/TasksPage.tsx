import { Anchor, Paper, Skeleton, Table, Text } from '@mantine/core';
import { Link } from 'wouter';
import { EmptyState } from '../../parts/EmptyState';
import { PageHeader } from '../../parts/PageHeader';
import { useTasks } from '../../parts/useTask';

export default function TasksPage() {
  const tasks = useTasks();
  return (
    <>
      <PageHeader title="Tasks" description="Functions that running nodes can execute" />
      {tasks === undefined && <Skeleton height={160} />}
      {tasks?.length === 0 && (
        <EmptyState icon="code" title="No tasks">
          Run yours with <code>duetime --app module:app serve</code>.
        </EmptyState>
      )}
      {tasks && tasks.length > 0 && (
        <Paper withBorder>
          <Table.ScrollContainer minWidth={480}>
            <Table aria-label="Tasks">
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>Task</Table.Th>
                  <Table.Th>Arguments</Table.Th>
                  <Table.Th>Queue</Table.Th>
                  <Table.Th>Timeout</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {tasks.map((task) => (
                  <Table.Tr key={task.name}>
                    <Table.Td>
                      <Anchor
                        component={Link}
                        href={`/tasks/${encodeURIComponent(task.name)}`}
                        size="sm"
                        className="mono"
                      >
                        {task.name}
                      </Anchor>
                      <Text size="xs" c="dimmed">
                        {task.doc}
                      </Text>
                    </Table.Td>
                    <Table.Td>
                      <Text size="sm" className="mono">
                        {task.arguments.map((argument) => argument.name).join(', ') || '–'}
                      </Text>
                    </Table.Td>
                    <Table.Td>{task.queue ?? '–'}</Table.Td>
                    <Table.Td>{task.timeout ?? 'none'}</Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </Table.ScrollContainer>
        </Paper>
      )}
    </>
  );
}
