import { Anchor, Checkbox, Table, Text } from '@mantine/core';
import { Link } from 'wouter';
import type { JobRow } from '../api/types';
import { Elapsed } from '../time/Elapsed';
import { Timestamp } from '../time/Timestamp';
import { CopyId } from './CopyText';
import { errorLine } from './errorLine';
import { JobStateBadge } from './StateBadge';
import type { Selection } from './useSelection';

interface JobListProps {
  label: string;
  jobs: readonly JobRow[];
  selection?: Selection;
}

/** A short list of jobs. */
export function JobList({ label, jobs, selection }: JobListProps) {
  return (
    <Table horizontalSpacing={0} aria-label={label}>
      <Table.Tbody>
        {jobs.map((job) => (
          <Table.Tr key={job.id}>
            {selection && (
              <Table.Td w={30}>
                <Checkbox
                  size="xs"
                  aria-label={`Select job ${job.id}`}
                  checked={selection.has(job.id)}
                  onChange={() => selection.toggle(job.id)}
                />
              </Table.Td>
            )}
            <Table.Td w={110}>
              <JobStateBadge job={job} />
            </Table.Td>
            <Table.Td>
              <Anchor component={Link} href={`/jobs/${job.id}`} size="sm" c="var(--mantine-color-text)">
                <Timestamp at={job.fire_time} />
              </Anchor>
              {job.error && (
                <Text size="xs" c="dimmed" lineClamp={1}>
                  {errorLine(job.error)}
                </Text>
              )}
            </Table.Td>
            <Table.Td w={80} ta="right">
              <Elapsed from={job.started_at} to={job.finished_at} />
            </Table.Td>
            <Table.Td w={110} ta="right" visibleFrom="xs">
              <CopyId id={job.id} />
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}
