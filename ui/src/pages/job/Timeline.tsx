import { Text, Timeline as Line } from '@mantine/core';
import type { ReactNode } from 'react';
import type { Job } from '../../api/types';
import { errorLine } from '../../parts/errorLine';
import { Lasted } from '../../time/Lasted';
import { Moment } from '../../time/Moment';
import classes from './Timeline.module.css';

interface Step {
  key: string;
  tone: string;
  title: string;
  at: string | null;
  more?: ReactNode;
}

const ENDINGS: Record<string, string> = {
  failed: 'failed', timed_out: 'ran out of time', cancelled: 'was cancelled', released: 'was given back', handed_over: 'was handed over',
  snoozed: 'put itself off', lost: 'was lost with its node', succeeded: 'succeeded',
};

export function Timeline({ job }: { job: Job }) {
  const steps = stepsOf(job);
  return (
    <Line bulletSize={14} lineWidth={2} active={steps.length} className={classes.root} aria-label="What happened">
      {steps.map((step) => (
        <Line.Item key={step.key} title={step.title} bullet={<span className={classes.bullet} style={{ background: `var(--state-${step.tone})` }} />}>
          <Text size="xs" c="dimmed" component="div">
            <Moment at={step.at} /> {step.more}
          </Text>
        </Line.Item>
      ))}
    </Line>
  );
}

function stepsOf(job: Job): Step[] {
  const steps: Step[] = [{ key: 'created', tone: 'pending', title: job.schedule ? 'Planned' : 'Submitted', at: job.created_at }];
  for (const attempt of job.attempts) {
    steps.push({
      key: `attempt-${attempt.attempt}`,
      tone: attempt.ending === 'failed' || attempt.ending === 'timed_out' || attempt.ending === 'lost' ? 'dead' : 'pending',
      title: `Attempt ${attempt.attempt} ${ENDINGS[attempt.ending] ?? attempt.ending}`,
      at: attempt.finished_at,
      more: (
        <>
          {attempt.started_at && <>after <Lasted from={attempt.started_at} to={attempt.finished_at} /> </>}
          {attempt.node !== null && <>on node {attempt.node}</>}
          {attempt.error && <div className={classes.error}>{errorLine(attempt.error)}</div>}
        </>
      ),
    });
  }
  const recorded = job.attempts.some((attempt) => attempt.attempt === job.attempt);
  if (!recorded) steps.push(...beginningOf(job));
  if (job.state === 'pending' || job.state === 'queued') steps.push({ key: 'due', tone: 'pending', title: job.failures ? 'Tries again' : 'Due', at: job.due_at });
  if (job.finished_at) steps.push({ key: 'finished', tone: job.state, title: job.state[0]!.toUpperCase() + job.state.slice(1), at: job.finished_at });
  return steps;
}

/** A node claims a job and may let it wait for its turn: when the attempt began is known once it has ended. */
function beginningOf(job: Job): Step[] {
  const where = job.node !== null && <>on node {job.node}</>;
  const steps: Step[] = [];
  if (job.claimed_at) steps.push({ key: 'claimed', tone: 'running', title: `Attempt ${job.attempt} claimed`, at: job.claimed_at, more: where });
  if (job.started_at) steps.push({ key: 'started', tone: 'running', title: `Attempt ${job.attempt} started`, at: job.started_at });
  return steps;
}
