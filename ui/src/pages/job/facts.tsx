import { Anchor } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { Job } from '../../api/types';
import { CopyText } from '../../parts/CopyText';
import { isExternal, wasReportedInTime } from '../../parts/externalJob';
import { LabelList } from '../../parts/LabelList';
import { TargetText } from '../../parts/TargetText';
import { Elapsed } from '../../time/Elapsed';
import { Timestamp } from '../../time/Timestamp';

export function factsOf(job: Job): Array<[string, ReactNode]> {
  const retry = job.retry as { max_attempts?: number } | null;
  const optional: Array<[string, ReactNode] | null> = [
    job.unique_key ? ['Unique key', <CopyText key="unique" text={job.unique_key} />] : null,
    job.retry_of ? ['Retry of', <JobLink key="retry" id={job.retry_of} />] : null,
    job.disposition ? ['Disposition', job.disposition] : null,
  ];
  return [
    ['Target', <TargetText key="target" target={job.target} wrap />],
    [
      'Schedule',
      job.schedule ? (
        <Anchor
          key="schedule"
          component={Link}
          href={`/schedules/${encodeURIComponent(job.schedule)}`}
          inherit
        >
          {job.schedule}
        </Anchor>
      ) : (
        'none (submitted once)'
      ),
    ],
    ['Fire time', <Timestamp key="fire" at={job.fire_time} />],
    [
      isExternal(job) || wasReportedInTime(job) ? 'Report due' : 'Due',
      <Timestamp key="due" at={job.due_at} show="both" />,
    ],
    [
      'Claimed',
      <Timestamp
        key="claimed"
        at={job.claimed_at}
        show="both"
        placeholder={job.finished_at ? 'never' : 'not yet'}
      />,
    ],
    ['Started', <Timestamp key="started" at={job.started_at} placeholder={startPlaceholder(job)} />],
    [
      'Duration',
      job.started_at ? <Elapsed key="duration" from={job.started_at} to={job.finished_at} /> : '–',
    ],
    [
      'Attempts',
      `${job.attempt}${retry?.max_attempts ? ` of ${retry.max_attempts}` : ''}, ${job.failures} failed${job.losses ? `, ${job.losses} lost` : ''}`,
    ],
    ['Queue', `${job.queue}, priority ${job.priority}`],
    ['Delivery', job.delivery.replaceAll('_', ' ')],
    ['Timeout', job.timeout ?? 'none'],
    ['Node', job.node === null ? 'none' : String(job.node)],
    ['Owner', job.owner ?? 'none'],
    ['Labels', Object.keys(job.labels).length ? <LabelList key="labels" labels={job.labels} /> : 'none'],
    ...optional.filter((fact) => fact !== null),
  ];
}

function startPlaceholder(job: Job): string {
  if (job.state === 'running') return 'shown when the attempt ends';
  if (!job.finished_at) return 'not yet';
  return job.claimed_at ? 'unknown' : 'never';
}

function JobLink({ id }: { id: string }) {
  return (
    <Anchor component={Link} href={`/jobs/${id}`} inherit className="mono">
      …{id.slice(-8)}
    </Anchor>
  );
}
