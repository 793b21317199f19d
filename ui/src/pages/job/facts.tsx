import { Anchor } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { Job, Task } from '../../api/types';
import { CopyText } from '../../parts/CopyText';
import { Facts } from '../../parts/Facts';
import { isExternal, wasReportedInTime } from '../../parts/externalJob';
import { LabelList } from '../../parts/LabelList';
import { TargetLink } from '../../parts/TargetText';
import { timeoutText } from '../../parts/timeoutText';
import { useNodes } from '../../parts/useNodes';
import { useTaskOf } from '../../parts/useTask';
import { useSession } from '../../session/sessionContext';
import { Elapsed } from '../../time/Elapsed';
import { Timestamp } from '../../time/Timestamp';

export function JobFacts({ job }: { job: Job }) {
  const { nameOf } = useNodes();
  const facts = factsOf(job, useTaskOf(job.target), nameOf(job.node));
  if (job.trace_id) facts.push(['Trace', <TraceLink key="trace" id={job.trace_id} />]);
  return <Facts facts={facts} />;
}

function factsOf(job: Job, declared: Task | undefined, node: string): Array<[string, ReactNode]> {
  const retry = (job.retry ?? declared?.retry) as { max_attempts?: number } | null | undefined;
  const optional: Array<[string, ReactNode] | null> = [
    job.unique_key ? ['Unique key', <CopyText key="unique" text={job.unique_key} />] : null,
    job.retry_of ? ['Retry of', <JobLink key="retry" id={job.retry_of} />] : null,
    job.disposition ? ['Disposition', job.disposition] : null,
  ];
  return [
    ['Target', <TargetLink key="target" target={job.target} />],
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
    ['Timeout', timeoutText(job, declared)],
    ['Node', node],
    ['Owner', job.owner ?? 'none'],
    ['Labels', Object.keys(job.labels).length ? <LabelList key="labels" labels={job.labels} /> : 'none'],
    ...optional.filter((fact) => fact !== null),
  ];
}

function startPlaceholder(job: Job): string {
  if (!job.finished_at) return 'not yet';
  return job.claimed_at ? 'unknown' : 'never';
}

/** Leads to the page that shows the trace, if the service knows one. */
function TraceLink({ id }: { id: string }) {
  const link = useSession().me.trace_link;
  if (!link) return <CopyText text={id} display={`…${id.slice(-8)}`} label="Copy trace id" />;
  return (
    <Anchor
      href={link.replaceAll('{trace_id}', id)}
      target="_blank"
      rel="noreferrer"
      inherit
      className="mono"
    >
      …{id.slice(-8)}
    </Anchor>
  );
}

function JobLink({ id }: { id: string }) {
  return (
    <Anchor component={Link} href={`/jobs/${id}`} inherit className="mono">
      …{id.slice(-8)}
    </Anchor>
  );
}
