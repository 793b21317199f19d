import { Paper, Tabs, Text } from '@mantine/core';
import type { Job } from '../../api/types';
import { JsonBlock } from '../../parts/JsonBlock';

/** The payload, result and checkpoint of a job. */
export function JobData({ job }: { job: Job }) {
  const parts: ReadonlyArray<[label: string, value: unknown, none: string]> = [
    ['Payload', job.payload, 'No payload.'],
    [
      job.target.type === 'http' ? 'Response' : 'Result',
      job.result,
      job.finished_at ? 'No result.' : 'The job has not finished yet.',
    ],
    ['Checkpoint', job.checkpoint, 'No checkpoint. A retry starts from the beginning.'],
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
            {value == null ? (
              <Text size="sm" c="dimmed">
                {none}
              </Text>
            ) : (
              <JsonBlock value={value} label={label} />
            )}
          </Tabs.Panel>
        ))}
      </Tabs>
    </Paper>
  );
}
