import { Button, Popover, Stack, TextInput } from '@mantine/core';
import { Icon } from '../../parts/Icon';
import { serverNow } from '../../time/clock';
import { fullTime, instantOf, localInput } from '../../time/format';
import { useViewerZone } from '../../time/viewerZone';
import type { JobFilters } from './filters';

const HOUR = 3_600_000;
const RANGES: ReadonlyArray<[label: string, from: number | null, to: number | null]> = [
  ['Last hour', -HOUR, 0],
  ['Last day', -24 * HOUR, 0],
  ['Last week', -7 * 24 * HOUR, 0],
  ['Next hour', 0, HOUR],
  ['Any time', null, null],
];

const fromNow = (offset: number | null): string =>
  offset === null ? '' : new Date(serverNow() + offset).toISOString();

/** Filters by due time, in the time zone of the viewer. */
export function DueRange({
  filters,
  onChange,
}: {
  filters: JobFilters;
  onChange: (change: JobFilters) => void;
}) {
  const zone = useViewerZone();
  const local = (iso: string | undefined) => (iso ? localInput(Date.parse(iso), zone) : '');
  const read = (text: string) => {
    const at = instantOf(text, zone);
    return at === null ? '' : new Date(at).toISOString();
  };
  return (
    <Popover position="bottom-start" shadow="md" width={280} trapFocus>
      <Popover.Target>
        <Button variant="default" leftSection={<Icon name="calendar" size={15} />}>
          {rangeText(filters, zone)}
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <Stack gap="xs">
          {RANGES.map(([label, from, to]) => (
            <Button
              key={label}
              variant="subtle"
              color="gray"
              size="compact-sm"
              justify="flex-start"
              onClick={() => onChange({ due_after: fromNow(from), due_before: fromNow(to) })}
            >
              {label}
            </Button>
          ))}
          <TextInput
            type="datetime-local"
            step={1}
            label={`Due from (${zone})`}
            value={local(filters.due_after)}
            onChange={(event) => onChange({ due_after: read(event.currentTarget.value) })}
          />
          <TextInput
            type="datetime-local"
            step={1}
            label="Due before"
            value={local(filters.due_before)}
            onChange={(event) => onChange({ due_before: read(event.currentTarget.value) })}
          />
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}

function rangeText({ due_after: from, due_before: to }: JobFilters, zone: string): string {
  const text = (iso: string) => fullTime(Date.parse(iso), zone, serverNow());
  if (from && to) return `${text(from)} – ${text(to)}`;
  if (from) return `From ${text(from)}`;
  return to ? `Before ${text(to)}` : 'Due any time';
}
