import { Text, Timeline as Line } from '@mantine/core';
import type { ReactNode } from 'react';
import type { Job } from '../../api/types';
import { errorLine } from '../../parts/errorLine';
import { JsonBlock } from '../../parts/JsonBlock';
import { useNodes } from '../../parts/useNodes';
import { Elapsed } from '../../time/Elapsed';
import { Timestamp } from '../../time/Timestamp';
import classes from './Timeline.module.css';

type NameOf = (node: number | null) => string;

interface Step {
  key: string;
  tone: string;
  title: string;
  at: string | null;
  more?: ReactNode;
}

const ENDINGS: Record<string, string> = {
  failed: 'failed',
  timed_out: 'timed out',
  cancelled: 'was cancelled',
  released: 'was released',
  handed_over: 'was accepted by an external worker',
  snoozed: 'was snoozed',
  lost: 'was lost with its node',
  succeeded: 'succeeded',
};

export function Timeline({ job }: { job: Job }) {
  const { nameOf } = useNodes();
  const steps = stepsOf(job, nameOf);
  return (
    <Line bulletSize={14} lineWidth={2} active={steps.length} className={classes.root} aria-label="History">
      {steps.map((step) => (
        <Line.Item
          key={step.key}
          title={step.title}
          bullet={<span className={classes.bullet} style={{ background: `var(--state-${step.tone})` }} />}
        >
          <Text size="xs" c="dimmed" component="div">
            <Timestamp at={step.at} /> {step.more}
          </Text>
        </Line.Item>
      ))}
    </Line>
  );
}

function stepsOf(job: Job, nameOf: NameOf): Step[] {
  const steps: Step[] = [
    {
      key: 'created',
      tone: 'pending',
      title: job.schedule ? 'Created by schedule' : 'Submitted',
      at: job.created_at,
    },
  ];
  for (const attempt of job.attempts) {
    steps.push({
      key: `attempt-${attempt.attempt}`,
      tone:
        attempt.ending === 'failed' || attempt.ending === 'timed_out' || attempt.ending === 'lost'
          ? 'dead'
          : 'pending',
      title: `Attempt ${attempt.attempt} ${ENDINGS[attempt.ending] ?? attempt.ending}`,
      at: attempt.finished_at,
      more: (
        <>
          {attempt.started_at && (
            <>
              after <Elapsed from={attempt.started_at} to={attempt.finished_at} />{' '}
            </>
          )}
          {attempt.node !== null && <>on {nameOf(attempt.node)}</>}
          {attempt.error && <div className={classes.error}>{errorLine(attempt.error)}</div>}
          {attempt.result != null && (
            <details>
              <summary>{job.target.type === 'http' ? 'Response' : 'Result'}</summary>
              <JsonBlock value={attempt.result} label={`Result of attempt ${attempt.attempt}`} />
            </details>
          )}
        </>
      ),
    });
  }
  const recorded = job.attempts.some((attempt) => attempt.attempt === job.attempt);
  if (!recorded) steps.push(...currentAttemptOf(job, nameOf));
  if (job.state === 'pending')
    steps.push({ key: 'due', tone: 'pending', title: job.failures ? 'Next attempt' : 'Due', at: job.due_at });
  if (job.finished_at)
    steps.push({
      key: 'finished',
      tone: job.state,
      title: job.state[0]!.toUpperCase() + job.state.slice(1),
      at: job.finished_at,
    });
  return steps;
}

/** The attempt that is not recorded yet. */
function currentAttemptOf(job: Job, nameOf: NameOf): Step[] {
  const where = job.node !== null && <>on {nameOf(job.node)}</>;
  const steps: Step[] = [];
  if (job.claimed_at)
    steps.push({
      key: 'claimed',
      tone: 'running',
      title: `Attempt ${job.attempt} claimed`,
      at: job.claimed_at,
      more: where,
    });
  if (job.started_at)
    steps.push({
      key: 'started',
      tone: 'running',
      title: `Attempt ${job.attempt} started`,
      at: job.started_at,
    });
  return steps;
}
