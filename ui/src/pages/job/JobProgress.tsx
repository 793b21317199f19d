import { Group, Paper, Progress, Text } from '@mantine/core';

interface ReportedProgress {
  done?: number;
  total?: number;
  note?: string;
}

/** The progress that the task reports. */
export function JobProgress({ progress }: { progress: unknown }) {
  if (typeof progress !== 'object' || progress === null) return null;
  const { done = 0, total = 0, note = '' } = progress as ReportedProgress;
  return (
    <Paper withBorder p="md">
      <Group justify="space-between" mb={6}>
        <Text size="sm">{note || 'Progress'}</Text>
        <Text size="sm" className="tabular">
          {total
            ? `${done.toLocaleString('en')} of ${total.toLocaleString('en')}`
            : done.toLocaleString('en')}
        </Text>
      </Group>
      <Progress value={total ? (100 * done) / total : 100} animated={!total} aria-label="Progress" />
    </Paper>
  );
}
