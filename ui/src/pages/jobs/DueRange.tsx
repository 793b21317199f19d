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
  ['Coming hour', 0, HOUR],
  ['Any time', null, null],
];

const moment = (lapse: number | null): string => (lapse === null ? '' : new Date(serverNow() + lapse).toISOString());

/** Due within a time, in the viewer's zone. */
export function DueRange({ filters, onChange }: { filters: JobFilters; onChange: (change: JobFilters) => void }) {
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
          {words(filters, zone)}
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <Stack gap="xs">
          {RANGES.map(([label, from, to]) => (
            <Button key={label} variant="subtle" color="gray" size="compact-sm" justify="flex-start" onClick={() => onChange({ due_after: moment(from), due_before: moment(to) })}>
              {label}
            </Button>
          ))}
          <TextInput type="datetime-local" step={1} label={`Due from (${zone})`} value={local(filters.due_after)} onChange={(event) => onChange({ due_after: read(event.currentTarget.value) })} />
          <TextInput type="datetime-local" step={1} label="Due before" value={local(filters.due_before)} onChange={(event) => onChange({ due_before: read(event.currentTarget.value) })} />
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}

function words({ due_after: from, due_before: to }: JobFilters, zone: string): string {
  const shown = (iso: string) => fullTime(Date.parse(iso), zone, serverNow());
  if (from && to) return `${shown(from)} – ${shown(to)}`;
  if (from) return `From ${shown(from)}`;
  return to ? `Before ${shown(to)}` : 'Due any time';
}
