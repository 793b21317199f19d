import { Anchor, Button, Table, Text } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import { call } from '../../api/call';
import type { Job, JobRow } from '../../api/types';
import { CopyId } from '../../parts/CopyText';
import { ProblemNote } from '../../parts/ProblemNote';
import { complain } from '../../parts/toasts';
import { usePages } from '../../parts/usePages';
import { useMay } from '../../session/sessionContext';
import { Moment } from '../../time/Moment';
import { RetryDialog } from '../job/RetryDialog';

const A_PAGE = 20;

/** The jobs of one group; each can be retried with another payload. */
export function DeadJobs({ filter }: { filter: { target: string; error?: string } }) {
  const may = useMay('manage');
  const [retried, setRetried] = useState<Job | null>(null);
  const list = usePages<JobRow>({
    key: ['jobs', 'dead', filter],
    fetch: (cursor, signal) => call('GET /jobs', { query: { ...filter, state: 'dead', limit: A_PAGE, ...(cursor && { cursor }) }, signal }),
    refresh: false,
  });
  const open = (id: string) => call('GET /jobs/{job_id}', { path: { job_id: id } }).then(setRetried, complain);
  return (
    <>
      {list.error !== null && <ProblemNote error={list.error} />}
      <Table horizontalSpacing="xs" aria-label="Dead letters of this kind">
        <Table.Tbody>
          {list.rows.map((job) => (
            <Table.Tr key={job.id}>
              <Table.Td>
                <Anchor component={Link} href={`/jobs/${job.id}`} size="sm">
                  <Moment at={job.finished_at ?? job.due_at} />
                </Anchor>
              </Table.Td>
              <Table.Td visibleFrom="sm">
                <Text size="sm" c="dimmed">
                  {job.schedule ?? 'one-off'}
                </Text>
              </Table.Td>
              <Table.Td visibleFrom="sm">
                <Text size="sm" c="dimmed">
                  {job.failures} failed
                </Text>
              </Table.Td>
              <Table.Td>
                <CopyId id={job.id} />
              </Table.Td>
              <Table.Td ta="right">
                <Button size="compact-xs" variant="default" disabled={!may} onClick={() => void open(job.id)}>
                  Edit and retry
                </Button>
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      {list.hasNextPage && (
        <Button size="xs" variant="subtle" loading={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()} w="fit-content">
          Show more
        </Button>
      )}
      {retried !== null && <RetryDialog job={retried} onClose={() => setRetried(null)} />}
    </>
  );
}
