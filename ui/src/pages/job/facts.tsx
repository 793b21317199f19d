import { Anchor } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { Job } from '../../api/types';
import { CopyText } from '../../parts/CopyText';
import { isHandedOver, wasReported } from '../../parts/handedOver';
import { LabelList } from '../../parts/LabelList';
import { TargetText } from '../../parts/TargetText';
import { Lasted } from '../../time/Lasted';
import { Moment } from '../../time/Moment';

export function factsOf(job: Job): Array<[string, ReactNode]> {
  const retry = job.retry as { max_attempts?: number } | null;
  const optional: Array<[string, ReactNode] | null> = [
    job.unique_key ? ['Unique key', <CopyText key="unique" text={job.unique_key} />] : null,
    job.retry_of ? ['Retry of', <JobLink key="retry" id={job.retry_of} />] : null,
    job.disposition ? ['Disposition', job.disposition] : null,
  ];
  return [
    ['Runs', <TargetText key="target" target={job.target} whole />],
    ['Schedule', job.schedule ? <Anchor key="schedule" component={Link} href={`/schedules/${encodeURIComponent(job.schedule)}`} inherit>{job.schedule}</Anchor> : 'none: submitted once'],
    ['Fire time', <Moment key="fire" at={job.fire_time} />],
    [isHandedOver(job) || wasReported(job) ? 'Report due' : 'Due', <Moment key="due" at={job.due_at} show="both" />],
    ['Claimed', <Moment key="claimed" at={job.claimed_at} show="both" absent={job.finished_at ? 'never' : 'not yet'} />],
    ['Started', <Moment key="started" at={job.started_at} absent={startUnknown(job)} />],
    ['Took', job.started_at ? <Lasted key="took" from={job.started_at} to={job.finished_at} /> : '–'],
    ['Attempts', `${job.attempt}${retry?.max_attempts ? ` of ${retry.max_attempts}` : ''}, ${job.failures} failed${job.losses ? `, ${job.losses} lost` : ''}`],
    ['Queue', `${job.queue}, priority ${job.priority}`],
    ['Delivery', job.delivery.replaceAll('_', ' ')],
    ['Time limit', job.timeout ?? 'none'],
    ['Node', job.node === null ? 'none' : String(job.node)],
    ['Owner', job.owner ?? 'nobody'],
    ['Labels', Object.keys(job.labels).length ? <LabelList key="labels" labels={job.labels} /> : 'none'],
    ...optional.filter((one) => one !== null),
  ];
}

function startUnknown(job: Job): string {
  if (job.state === 'running') return 'known once it has ended';
  if (!job.finished_at) return 'not yet';
  return job.claimed_at ? 'not known' : 'never';
}

function JobLink({ id }: { id: string }) {
  return (
    <Anchor component={Link} href={`/jobs/${id}`} inherit className="mono">
      …{id.slice(-8)}
    </Anchor>
  );
}
