import { Paper, Title } from '@mantine/core';
import { JsonBlock } from '../../parts/JsonBlock';

export function JobError({ error }: { error: string }) {
  return (
    <Paper withBorder p="lg">
      <Title order={2} size="h5" mb="sm" c="var(--state-dead)">
        Error
      </Title>
      <JsonBlock value={error} label="Error" />
    </Paper>
  );
}
