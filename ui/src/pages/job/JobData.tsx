import { Paper, Tabs, Text } from '@mantine/core';
import type { Job } from '../../api/types';
import { JsonBlock } from '../../parts/JsonBlock';

/** What went in, what came out, and what it noted on the way. */
export function JobData({ job }: { job: Job }) {
  const parts: ReadonlyArray<[label: string, value: unknown, none: string]> = [
    ['Payload', job.payload, 'It has no payload.'],
    [job.target.type === 'http' ? 'Response' : 'Result', job.result, job.finished_at ? 'It gave no result.' : 'It has not ended yet.'],
    ['Checkpoint', job.checkpoint, 'It saved no checkpoint: an attempt that begins anew begins at the start.'],
    ['JSON', job, ''],
  ];
  return (
    <Paper withBorder p="lg">
      <Tabs defaultValue={job.result == null ? 'Payload' : parts[1]![0]} keepMounted={false}>
        <Tabs.List mb="sm">
          {parts.map(([label]) => (
            <Tabs.Tab key={label} value={label} px={{ base: 10, xs: 'md' }}>
              {label}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {parts.map(([label, value, none]) => (
          <Tabs.Panel key={label} value={label}>
            {value == null ? <Text size="sm" c="dimmed">{none}</Text> : <JsonBlock value={value} label={label} />}
          </Tabs.Panel>
        ))}
      </Tabs>
    </Paper>
  );
}
