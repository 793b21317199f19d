import { Box, SegmentedControl, Select, TextInput } from '@mantine/core';
import { Note } from '../parts/Note';
import { useNow } from '../../time/clock';
import { clockTime, day, relative, zoneName } from '../../time/format';
import { occurrences } from '../../time/occurrences';
import { ZONES } from '../../time/viewerZone';
import { resolveWhen, type Resolved, type When } from './when';
import classes from './WhenInput.module.css';

interface WhenInputProps {
  value: When;
  onChange: (change: Partial<When>) => void;
  error?: string | undefined;
  /** Moves the focus to the date when a dialog opens. */
  focusFirst?: boolean;
  required?: boolean;
}

/** A date, a time and a zone, and which instant they mean. */
export function WhenInput({ value, onChange, error, focusFirst = false, required = false }: WhenInputProps) {
  const resolved = resolveWhen(value);
  return (
    <div>
      <div className={classes.fields}>
        <TextInput
          type="date"
          label="Date"
          value={value.date}
          onChange={(event) => onChange({ date: event.currentTarget.value })}
          error={error}
          required={required}
          withAsterisk={false}
          data-autofocus={focusFirst || undefined}
        />
        <TextInput
          type="time"
          step={/:(?!00$)\d\d$/.test(value.time.slice(5)) ? 1 : 60}
          label="Time"
          value={value.time}
          onChange={(event) => onChange({ time: event.currentTarget.value })}
          error={Boolean(error)}
          required={required}
          withAsterisk={false}
        />
        <Select
          label="Time zone"
          className={classes.zone}
          data={ZONES}
          value={value.zone}
          onChange={(zone) => zone && onChange({ zone })}
          searchable
          limit={60}
          allowDeselect={false}
        />
      </div>
      {resolved && <Meaning value={value} resolved={resolved} onChange={onChange} />}
    </div>
  );
}

function Meaning({
  value,
  resolved: { at, kind },
  onChange,
}: Pick<WhenInputProps, 'value' | 'onChange'> & { resolved: Resolved }) {
  const now = useNow();
  const { zone, time } = value;
  return (
    <>
      <div className={classes.note}>
        <strong>
          {day(at, zone, now)} {clockTime(at, zone, false)} {zoneName(at, zone)}
        </strong>
        {zone !== 'UTC' && (
          <span>
            {clockTime(at, 'UTC', false)} UTC
            {day(at, 'UTC', now) !== day(at, zone, now) && `, ${day(at, 'UTC', now)}`}
          </span>
        )}
        <span>{relative(at, now)}</span>
      </div>
      {kind === 'skipped' && (
        <Box mt="xs">
          <Note>
            {time} does not exist on this day in {zone}: clocks go forward. The post goes out at{' '}
            {clockTime(at, zone, false)} {zoneName(at, zone)}.
          </Note>
        </Box>
      )}
      {kind === 'twice' && (
        <Box mt="xs">
          <Note>
            {time} happens twice on this day in {zone}: clocks go back. Choose one:
            <SegmentedControl
              mt="xs"
              size="xs"
              fullWidth
              aria-label="Which of the two times"
              value={value.later ? 'later' : 'first'}
              onChange={(chosen) => onChange({ later: chosen === 'later' })}
              data={occurrences(`${value.date}T${time}`, zone).map((one, index) => ({
                value: index ? 'later' : 'first',
                label: `${index ? 'Second' : 'First'}: ${time} ${zoneName(one, zone)}`,
              }))}
            />
          </Note>
        </Box>
      )}
    </>
  );
}
