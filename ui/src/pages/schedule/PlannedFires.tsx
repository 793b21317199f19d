import { Group, Stack, Text } from '@mantine/core';
import type { Plan } from '../../api/types';
import { Moment } from '../../time/Moment';
import classes from './PlannedFires.module.css';

export function PlannedFires({ plan }: { plan: Plan }) {
  const { added, withdrawn, moved } = plan.fires;
  const lines = [
    ...moved.map((one) => ({ key: `m${one.from}`, sign: '→', tone: 'moved', at: one.from, to: one.to })),
    ...withdrawn.map((at) => ({ key: `w${at}`, sign: '−', tone: 'withdrawn', at, to: null })),
    ...added.map((at) => ({ key: `a${at}`, sign: '+', tone: 'added', at, to: null })),
  ].toSorted((a, b) => a.at.localeCompare(b.at));
  return (
    <Stack gap={6}>
      <Text size="sm" fw={600}>
        Fires in the coming week
      </Text>
      <Group gap="lg">
        <Count n={plan.counts.kept} what="stay" />
        <Count n={plan.counts.moved} what="move" more={!plan.complete} />
        <Count n={plan.counts.added} what="come" more={!plan.complete} />
        <Count n={plan.counts.withdrawn} what="go" more={!plan.complete} />
        {plan.jobs_withdrawn > 0 && <Count n={plan.jobs_withdrawn} what="planned jobs are withdrawn" />}
      </Group>
      {lines.length > 0 && (
        <ul className={classes.root}>
          {lines.map((line) => (
            <li key={line.key} data-tone={line.tone}>
              <span className={classes.sign}>{line.sign}</span>
              <Moment at={line.at} />
              {line.to && (
                <>
                  {' becomes '}
                  <Moment at={line.to} />
                </>
              )}
            </li>
          ))}
        </ul>
      )}
    </Stack>
  );
}

function Count({ n, what, more = false }: { n: number; what: string; more?: boolean }) {
  return (
    <Text size="sm" c={n ? undefined : 'dimmed'}>
      <strong>
        {n.toLocaleString('en')}
        {more && n > 0 ? ' or more' : ''}
      </strong>{' '}
      {what}
    </Text>
  );
}
