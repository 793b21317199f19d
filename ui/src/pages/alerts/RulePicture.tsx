import { Alert, Text } from '@mantine/core';
import { Icon } from '../../parts/Icon';
import { parseDuration } from '../../time/duration';
import { Timestamp } from '../../time/Timestamp';
import { CONDITIONS, describeRule } from './conditions';
import { bodyOfRule, type RuleDraft } from './ruleDraft';
import { useSchedulesLike } from './useSchedulesLike';

/** What will happen, in a sentence; for one silent schedule with the times of its next fire. */
export function RulePicture({ draft }: { draft: RuleDraft }) {
  return (
    <Alert color="gray" icon={<Icon name="alert" />} role="note" aria-label="What will happen">
      <Text size="sm">{describeRule(bodyOfRule(draft))}</Text>
      <NextFire draft={draft} />
    </Alert>
  );
}

function NextFire({ draft }: { draft: RuleDraft }) {
  const name = draft.schedule.trim();
  const found = useSchedulesLike(name);
  if (!CONDITIONS[draft.condition].hasSchedule || !name || name.includes('*') || !found) return null;
  const schedule = found.find((one) => one.name === name);
  const after = parseDuration(draft.after);
  if (!schedule)
    return (
      <Text size="sm" c="dimmed">
        There is no schedule {name} yet.
      </Text>
    );
  if (draft.condition !== 'silent' || !draft.enabled || after === null) return null;
  if (schedule.paused || !schedule.next_fire_time)
    return (
      <Text size="sm" c="dimmed">
        {name} {schedule.paused ? 'is paused' : 'does not fire again'}: it is not silent.
      </Text>
    );
  const told = new Date(Date.parse(schedule.next_fire_time) + after).toISOString();
  return (
    <Text size="sm" c="dimmed">
      {name} fires next at <Timestamp at={schedule.next_fire_time} />. Without a success it is told at{' '}
      <Timestamp at={told} />.
    </Text>
  );
}
