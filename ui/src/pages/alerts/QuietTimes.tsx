import { Button, Checkbox, Group, Input, Paper, Select, Stack, TextInput } from '@mantine/core';
import type { FieldErrors } from '../../forms/fieldErrors';
import { Icon } from '../../parts/Icon';
import { ZONES } from '../../time/viewerZone';
import { DAYS, newQuietTime, titled, type Day, type QuietTime } from './channelDraft';

interface QuietTimesProps {
  times: readonly QuietTime[];
  onChange: (times: QuietTime[]) => void;
  errorAt: FieldErrors;
}

/** Times of the day in which the channel is told nothing. */
export function QuietTimes({ times, onChange, errorAt }: QuietTimesProps) {
  const change = (index: number, next: Partial<QuietTime>) =>
    onChange(times.map((time, position) => (position === index ? { ...time, ...next } : time)));
  return (
    <Input.Wrapper
      label="Quiet times"
      labelElement="div"
      description="What is still wrong at the end of a quiet time is told then"
      error={errorAt('quiet')}
    >
      <Stack gap="xs" mt={6}>
        {times.map((time, index) => (
          // oxlint-disable-next-line react/no-array-index-key -- rows have no identity except their position
          <Paper key={index} withBorder p="sm" role="group" aria-label={`Quiet time ${index + 1}`}>
            <Stack gap="xs">
              <Group gap="xs" align="flex-start" grow>
                <TextInput
                  type="time"
                  label="From"
                  value={time.start}
                  onChange={(event) => change(index, { start: event.currentTarget.value })}
                  error={errorAt(`quiet[${index}].start`)}
                />
                <TextInput
                  type="time"
                  label="To"
                  value={time.end}
                  onChange={(event) => change(index, { end: event.currentTarget.value })}
                  error={errorAt(`quiet[${index}].end`)}
                />
              </Group>
              <Select
                label="Time zone"
                data={ZONES}
                value={time.tz}
                onChange={(tz) => change(index, { tz: tz ?? 'UTC' })}
                searchable
                limit={60}
                allowDeselect={false}
                error={errorAt(`quiet[${index}].tz`)}
              />
              <Checkbox.Group
                label="Days on which it begins"
                value={time.days}
                onChange={(days) =>
                  change(index, { days: DAYS.filter((day) => days.includes(day)) as Day[] })
                }
                error={errorAt(`quiet[${index}].days`)}
              >
                <Group gap="sm" mt={6}>
                  {DAYS.map((day) => (
                    <Checkbox key={day} value={day} label={titled(day)} />
                  ))}
                </Group>
              </Checkbox.Group>
              <Button
                variant="subtle"
                color="gray"
                size="compact-sm"
                w="fit-content"
                leftSection={<Icon name="cross" size={14} />}
                onClick={() => onChange(times.filter((_, position) => position !== index))}
                aria-label={`Remove quiet time ${index + 1}`}
              >
                Remove
              </Button>
            </Stack>
          </Paper>
        ))}
        <Button
          variant="subtle"
          color="gray"
          size="compact-sm"
          w="fit-content"
          leftSection={<Icon name="plus" size={14} />}
          onClick={() => onChange([...times, newQuietTime()])}
        >
          Add quiet time
        </Button>
      </Stack>
    </Input.Wrapper>
  );
}
