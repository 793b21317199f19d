import { Anchor, Modal, Skeleton, Table } from '@mantine/core';
import { useQueries } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { call } from '../../api/call';
import type { Job } from '../../api/types';
import { lapsesOf } from '../../parts/lapses';
import { ProblemNote } from '../../parts/ProblemNote';
import { JobStateBadge } from '../../parts/StateBadge';
import { useNodes } from '../../parts/useNodes';
import { formatDuration } from '../../time/format';
import { Timestamp } from '../../time/Timestamp';
import classes from './DiffTable.module.css';

type Row = [name: string, text: (job: Job) => string, cell?: (job: Job) => ReactNode];

const lapse = (milliseconds: number | null): string =>
  milliseconds === null ? '–' : formatDuration(milliseconds);
const json = (value: unknown): string => (value == null ? 'none' : JSON.stringify(value, null, 1));

/** Two runs next to each other. What differs is marked. */
export function CompareDialog({ ids, onClose }: { ids: [string, string]; onClose: () => void }) {
  const { nameOf } = useNodes();
  const queries = useQueries({
    queries: ids.map((id) => ({
      queryKey: ['job', id],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        call('GET /jobs/{job_id}', { path: { job_id: id }, signal }),
    })),
  });
  const rows: Row[] = [
    ['State', (job) => job.state, (job) => <JobStateBadge job={job} />],
    ['Duration', (job) => lapse(lapsesOf(job).duration)],
    ['Lateness', (job) => lapse(lapsesOf(job).lateness)],
    ['Attempts', (job) => `${job.attempt}, ${job.failures} failed`],
    ['Node', (job) => nameOf(job.node)],
    ['Queue', (job) => `${job.queue}, priority ${job.priority}`],
    ['Payload', (job) => json(job.payload)],
    ['Result', (job) => json(job.result)],
    ['Error', (job) => job.error ?? 'none'],
  ];
  const failed = queries.find((query) => query.error !== null)?.error ?? null;
  const jobs = queries
    .flatMap((query) => (query.data ? [query.data] : []))
    .toSorted((a, b) => Date.parse(a.fire_time) - Date.parse(b.fire_time));
  const [before, after] = jobs;
  return (
    <Modal
      opened
      onClose={onClose}
      title="Compare two runs"
      size="xl"
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      {failed !== null && <ProblemNote error={failed} />}
      {failed === null && (!before || !after) && <Skeleton height={240} />}
      {before && after && (
        <Table.ScrollContainer minWidth={480}>
          <Table withTableBorder className={classes.root} aria-label="Two runs">
            <Table.Thead>
              <Table.Tr>
                <Table.Th w={100} aria-label="Field" />
                {[before, after].map((job) => (
                  <Table.Th key={job.id}>
                    <Anchor component={Link} href={`/jobs/${job.id}`} size="sm">
                      <Timestamp at={job.fire_time} />
                    </Anchor>
                  </Table.Th>
                ))}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {rows.map(([name, text, cell = text]) => {
                const differs = text(before) !== text(after);
                return (
                  <Table.Tr key={name} data-differs={differs}>
                    <Table.Td fw={differs ? 650 : undefined}>{name}</Table.Td>
                    <Table.Td className={differs ? classes.before : classes.same}>{cell(before)}</Table.Td>
                    <Table.Td className={differs ? classes.after : classes.same}>{cell(after)}</Table.Td>
                  </Table.Tr>
                );
              })}
            </Table.Tbody>
          </Table>
        </Table.ScrollContainer>
      )}
    </Modal>
  );
}
