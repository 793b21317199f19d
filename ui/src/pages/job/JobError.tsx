import { Paper, Title } from '@mantine/core';
import { JsonBlock } from '../../parts/JsonBlock';

export function JobError({ error, succeeded }: { error: string; succeeded: boolean }) {
  return (
    <Paper withBorder p="lg">
      <Title order={2} size="h5" mb="sm" c={succeeded ? undefined : 'var(--state-dead)'}>
        {succeeded ? 'Note' : 'Error'}
      </Title>
      <JsonBlock value={error} label={succeeded ? 'Note' : 'Error'} />
    </Paper>
  );
}
