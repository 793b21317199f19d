import { Group, Stack, Text } from '@mantine/core';
import type { Plan } from '../../api/types';
import { Timestamp } from '../../time/Timestamp';
import classes from './PlannedFires.module.css';

export function PlannedFires({ plan }: { plan: Plan }) {
  const { added, withdrawn, moved } = plan.fires;
  const lines = [
    ...moved.map((move) => ({ key: `m${move.from}`, sign: '→', tone: 'moved', at: move.from, to: move.to })),
    ...withdrawn.map((at) => ({ key: `w${at}`, sign: '−', tone: 'withdrawn', at, to: null })),
    ...added.map((at) => ({ key: `a${at}`, sign: '+', tone: 'added', at, to: null })),
  ].toSorted((a, b) => a.at.localeCompare(b.at));
  return (
    <Stack gap={6}>
      <Text size="sm" fw={600}>
        Fires in the next 7 days
      </Text>
      <Group gap="lg">
        <Count n={plan.counts.kept} label="unchanged" />
        <Count n={plan.counts.moved} label="moved" more={!plan.complete} />
        <Count n={plan.counts.added} label="added" more={!plan.complete} />
        <Count n={plan.counts.withdrawn} label="removed" more={!plan.complete} />
        {plan.jobs_withdrawn > 0 && <Count n={plan.jobs_withdrawn} label="pending jobs removed" />}
      </Group>
      {lines.length > 0 && (
        <ul className={classes.root}>
          {lines.map((line) => (
            <li key={line.key} data-tone={line.tone}>
              <span className={classes.sign}>{line.sign}</span>
              <Timestamp at={line.at} />
              {line.to && (
                <>
                  {' becomes '}
                  <Timestamp at={line.to} />
                </>
              )}
            </li>
          ))}
        </ul>
      )}
    </Stack>
  );
}

function Count({ n, label, more = false }: { n: number; label: string; more?: boolean }) {
  return (
    <Text size="sm" c={n ? undefined : 'dimmed'}>
      <strong>
        {n.toLocaleString('en')}
        {more && n > 0 ? ' or more' : ''}
      </strong>{' '}
      {label}
    </Text>
  );
}
