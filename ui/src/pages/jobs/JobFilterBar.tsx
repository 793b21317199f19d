import { Group, Select } from '@mantine/core';
import { FilterText } from '../../parts/FilterText';
import { Icon } from '../../parts/Icon';
import { MoreFilters } from '../../parts/MoreFilters';
import { DueRange } from './DueRange';
import { STATES, type JobFilters } from './filters';

interface JobFilterBarProps {
  filters: JobFilters;
  onChange: (change: JobFilters) => void;
}

const MORE = [
  { name: 'queue', label: 'Queue', placeholder: 'billing' },
  { name: 'owner', label: 'Owner', placeholder: 'ada' },
  { name: 'label', label: 'Label', placeholder: 'team:billing' },
  { name: 'target', label: 'Task', placeholder: 'invoice.send' },
  { name: 'error', label: 'Error contains', placeholder: 'no address' },
  { name: 'payload', label: 'Payload field', placeholder: 'order.id:17' },
  { name: 'worker', label: 'Node', placeholder: 'host-1' },
] as const;

export function JobFilterBar({ filters, onChange }: JobFilterBarProps) {
  return (
    <Group gap="xs" mb="sm">
      <Select
        value={filters.state ?? ''}
        onChange={(state) => onChange({ state: state ?? '' })}
        data={[
          { value: '', label: 'Any state' },
          ...STATES.map((state) => ({ value: state, label: state[0]!.toUpperCase() + state.slice(1) })),
        ]}
        aria-label="State"
        allowDeselect={false}
        w={150}
      />
      <FilterText
        value={filters.schedule ?? ''}
        onFilter={(schedule) => onChange({ schedule })}
        placeholder="Schedule"
        aria-label="Schedule name"
        leftSection={<Icon name="schedule" size={15} />}
        flex="1 1 180px"
        maw={280}
        data-search
      />
      <DueRange filters={filters} onChange={onChange} />
      <MoreFilters fields={MORE} filters={filters} onChange={onChange} />
    </Group>
  );
}
