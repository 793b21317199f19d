import { Anchor, Button, Checkbox, Group, Table, Text } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import { call } from '../../api/call';
import type { Job, JobRow } from '../../api/types';
import { CopyId } from '../../parts/CopyText';
import { PayloadText } from '../../parts/PayloadText';
import { plural } from '../../parts/plural';
import { ProblemNote } from '../../parts/ProblemNote';
import { showError } from '../../parts/toasts';
import { usePages } from '../../parts/usePages';
import { useSelection } from '../../parts/useSelection';
import { useHasScope } from '../../session/sessionContext';
import { Timestamp } from '../../time/Timestamp';
import type { DeadAction, DeadFilter } from './DeadBulk';
import { RetryDialog } from '../job/RetryDialog';

const PAGE_SIZE = 20;

/** The jobs of one group. Each can be retried with a changed payload. */
export function DeadJobs({ filter, onBulk }: { filter: DeadFilter; onBulk: (action: DeadAction) => void }) {
  const canManage = useHasScope('manage');
  const [retrying, setRetrying] = useState<Job | null>(null);
  const selection = useSelection(filter);
  const list = usePages<JobRow>({
    key: ['jobs', 'dead', filter],
    fetch: (cursor, signal) =>
      call('GET /jobs', {
        query: { ...filter, state: 'dead', limit: PAGE_SIZE, ...(cursor && { cursor }) },
        signal,
      }),
    refresh: false,
  });
  const bulk = (action: DeadAction['action']) => {
    onBulk({ action, ids: selection.ids });
    selection.clear();
  };
  const open = (id: string) =>
    call('GET /jobs/{job_id}', { path: { job_id: id } }).then(setRetrying, showError);
  return (
    <>
      {list.error !== null && <ProblemNote error={list.error} />}
      <Table.ScrollContainer minWidth={540}>
        <Table horizontalSpacing="xs" aria-label="Dead letters with this error">
          <Table.Tbody>
            {list.rows.map((job) => (
              <Table.Tr key={job.id}>
                <Table.Td w={32}>
                  <Checkbox
                    size="xs"
                    aria-label={`Select job ${job.id}`}
                    checked={selection.has(job.id)}
                    onChange={() => selection.toggle(job.id)}
                    disabled={!canManage}
                  />
                </Table.Td>
                <Table.Td>
                  <Anchor component={Link} href={`/jobs/${job.id}`} size="sm">
                    <Timestamp at={job.finished_at ?? job.due_at} />
                  </Anchor>
                </Table.Td>
                <Table.Td maw={260}>
                  <PayloadText job={job} />
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
      </Table.ScrollContainer>
      {selection.size > 0 && (
        <Group gap="xs">
          <Text size="sm">{plural(selection.size, 'dead letter')} selected</Text>
          <Button size="xs" variant="default" onClick={() => bulk('retry')}>
            Retry selected
          </Button>
          <Button size="xs" variant="default" c="var(--state-dead)" onClick={() => bulk('discard')}>
            Discard selected
          </Button>
        </Group>
      )}
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
