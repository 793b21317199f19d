import { Group, SegmentedControl } from '@mantine/core';
import { FilterText } from '../../parts/FilterText';
import { Icon } from '../../parts/Icon';
import { MoreFilters } from '../../parts/MoreFilters';
import type { ScheduleFilters } from './filters';

interface ScheduleFilterBarProps {
  filters: ScheduleFilters;
  onChange: (change: ScheduleFilters) => void;
}

const MORE = [
  { name: 'owner', label: 'Owner', placeholder: 'ada' },
  { name: 'queue', label: 'Queue', placeholder: 'billing' },
  { name: 'target', label: 'Task', placeholder: 'invoice.send' },
  { name: 'label', label: 'Label', placeholder: 'team:billing' },
] as const;

export function ScheduleFilterBar({ filters, onChange }: ScheduleFilterBarProps) {
  return (
    <Group gap="xs" mb="sm">
      <FilterText
        value={filters.text ?? ''}
        onFilter={(text) => onChange({ text })}
        placeholder="Search by name"
        aria-label="Search schedules by name"
        leftSection={<Icon name="search" size={15} />}
        flex="1 1 240px"
        maw={420}
        data-search
      />
      <SegmentedControl
        value={filters.paused ?? ''}
        onChange={(paused) => onChange({ paused })}
        data={[
          { value: '', label: 'All' },
          { value: 'false', label: 'Active' },
          { value: 'true', label: 'Paused' },
        ]}
        aria-label="State"
      />
      <MoreFilters fields={MORE} filters={filters} onChange={onChange} />
    </Group>
  );
}
