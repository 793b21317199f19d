import { Anchor, Button, Table, Text } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import { call } from '../../api/call';
import type { Job, JobRow } from '../../api/types';
import { CopyId } from '../../parts/CopyText';
import { plural } from '../../parts/plural';
import { ProblemNote } from '../../parts/ProblemNote';
import { showError } from '../../parts/toasts';
import { usePages } from '../../parts/usePages';
import { useHasScope } from '../../session/sessionContext';
import { Timestamp } from '../../time/Timestamp';
import { RetryDialog } from '../job/RetryDialog';

const PAGE_SIZE = 20;

/** The jobs of one group. Each can be retried with a changed payload. */
export function DeadJobs({ filter }: { filter: { target: string; error?: string } }) {
  const canManage = useHasScope('manage');
  const [retrying, setRetrying] = useState<Job | null>(null);
  const list = usePages<JobRow>({
    key: ['jobs', 'dead', filter],
    fetch: (cursor, signal) =>
      call('GET /jobs', {
        query: { ...filter, state: 'dead', limit: PAGE_SIZE, ...(cursor && { cursor }) },
        signal,
      }),
    refresh: false,
  });
  const open = (id: string) =>
    call('GET /jobs/{job_id}', { path: { job_id: id } }).then(setRetrying, showError);
  return (
    <>
      {list.error !== null && <ProblemNote error={list.error} />}
      <Table horizontalSpacing="xs" aria-label="Dead letters with this error">
        <Table.Tbody>
          {list.rows.map((job) => (
            <Table.Tr key={job.id}>
              <Table.Td>
                <Anchor component={Link} href={`/jobs/${job.id}`} size="sm">
                  <Timestamp at={job.finished_at ?? job.due_at} />
                </Anchor>
              </Table.Td>
              <Table.Td visibleFrom="sm">
                <Text size="sm" c="dimmed">
                  {job.schedule ?? 'one-off'}
                </Text>
              </Table.Td>
              <Table.Td visibleFrom="sm">
                <Text size="sm" c="dimmed">
                  {plural(job.failures, 'failure')}
                </Text>
              </Table.Td>
              <Table.Td>
                <CopyId id={job.id} />
              </Table.Td>
              <Table.Td ta="right">
                <Button
                  size="compact-xs"
                  variant="default"
                  disabled={!canManage}
                  onClick={() => void open(job.id)}
                >
                  Edit and retry
                </Button>
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      {list.hasNextPage && (
        <Button
          size="xs"
          variant="subtle"
          loading={list.isFetchingNextPage}
          onClick={() => void list.fetchNextPage()}
          w="fit-content"
        >
          Show more
        </Button>
      )}
      {retrying !== null && <RetryDialog job={retrying} onClose={() => setRetrying(null)} />}
    </>
  );
}
