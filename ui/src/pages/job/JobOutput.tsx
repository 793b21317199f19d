import { ActionIcon, Group, Paper, Select, Text, Title } from '@mantine/core';
import { useClipboard } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { Fragment, useState } from 'react';
import { call } from '../../api/call';
import type { Job, OutputLine } from '../../api/types';
import { useRefresh } from '../../live/liveContext';
import { Icon } from '../../parts/Icon';
import { ProblemNote } from '../../parts/ProblemNote';
import { clockTime } from '../../time/format';
import { useViewerZone } from '../../time/viewerZone';
import classes from './JobOutput.module.css';

/** What an attempt has logged and printed; live while it runs. */
export function JobOutput({ job }: { job: Job }) {
  const [chosen, setChosen] = useState<number | null>(null);
  const attempt = chosen ?? job.attempt;
  const interval = useRefresh(2_000);
  const output = useQuery({
    queryKey: ['job-output', job.id, attempt],
    queryFn: ({ signal }) =>
      call('GET /jobs/{job_id}/output', { path: { job_id: job.id }, query: { attempt }, signal }),
    enabled: attempt > 0,
    refetchInterval: (query) => (query.state.data?.ended ? false : interval),
  });
  if (attempt === 0) return null;
  return (
    <Paper withBorder p="lg" component="section" aria-label="Output">
      <Group justify="space-between" mb="sm">
        <Title order={2} size="h5">
          Output
        </Title>
        {job.attempt > 1 && (
          <Select
            aria-label="Attempt"
            size="xs"
            w={130}
            allowDeselect={false}
            data={Array.from({ length: job.attempt }, (_, index) => ({
              value: String(job.attempt - index),
              label: `Attempt ${job.attempt - index}`,
            }))}
            value={String(attempt)}
            onChange={(value) => setChosen(value === String(job.attempt) ? null : Number(value))}
          />
        )}
      </Group>
      {output.error && <ProblemNote error={output.error} title="Could not load the output" />}
      {output.data && <Lines {...output.data} />}
    </Paper>
  );
}

interface LinesProps {
  lines: OutputLine[];
  total: number;
  ended: boolean;
}

function Lines({ lines, total, ended }: LinesProps) {
  const zone = useViewerZone();
  const clipboard = useClipboard({ timeout: 1_500 });
  if (total === 0)
    return (
      <Text size="sm" c="dimmed">
        {ended ? 'No output.' : 'No output yet.'}
      </Text>
    );
  const text = lines.map((line) => `${line.at} ${nameOf(line)} ${line.text}`).join('\n');
  const last = lines.at(-1)?.number ?? 0;
  return (
    <div className={classes.root}>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a scrolling box must be reachable by keyboard */}
      <pre className={`${classes.text} mono`} tabIndex={0} role="region" aria-label="Lines of output">
        {lines.map((line, index) => (
          <Fragment key={line.number}>
            <LeftOut count={line.number - (lines[index - 1]?.number ?? 0) - 1} />
            <div className={classes.line} data-kind={kindOf(line)}>
              <time dateTime={line.at} title={line.at}>
                {clockTime(Date.parse(line.at), zone)}
              </time>
              <span className={classes.name}>{nameOf(line)}</span>
              <span className={classes.content}>{line.text}</span>
            </div>
          </Fragment>
        ))}
        {ended && <LeftOut count={total - last} />}
      </pre>
      <ActionIcon
        className={classes.copy}
        variant="default"
        aria-label={clipboard.copied ? 'Copied' : 'Copy output'}
        onClick={() => clipboard.copy(text)}
      >
        <Icon name={clipboard.copied ? 'check' : 'copy'} size={14} />
      </ActionIcon>
    </div>
  );
}

function LeftOut({ count }: { count: number }) {
  return count > 0 ? (
    <div className={classes.leftOut}>
      {count.toLocaleString('en')} {count === 1 ? 'line' : 'lines'} left out
    </div>
  ) : null;
}

const nameOf = (line: OutputLine): string => (line.stream === 'log' ? line.level : line.stream);

function kindOf(line: OutputLine): string | undefined {
  if (line.stream === 'stderr' || line.level === 'error' || line.level === 'critical') return 'error';
  return line.level === 'warning' ? 'warning' : undefined;
}
