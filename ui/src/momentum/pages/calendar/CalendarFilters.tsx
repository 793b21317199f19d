import { Group, Select } from '@mantine/core';
import { FilterText } from '../../../parts/FilterText';
import { Icon } from '../../../parts/Icon';
import type { Account } from '../../api/types';
import { POST_STATES, stateLabel } from '../../parts/states';

export interface CalendarFilters {
  account?: string;
  state?: string;
  label?: string;
  q?: string;
  /** A span of time, for the list. */
  from?: string;
  to?: string;
}

interface CalendarFiltersProps {
  accounts: Account[];
  filters: CalendarFilters;
  onChange: (change: CalendarFilters) => void;
}

export function FilterBar({ accounts, filters, onChange }: CalendarFiltersProps) {
  return (
    <Group gap="xs" mb="sm">
      <FilterText
        value={filters.q ?? ''}
        onFilter={(q) => onChange({ q })}
        placeholder="Search the text"
        aria-label="Search posts by text"
        leftSection={<Icon name="search" size={15} />}
        w={{ base: '100%', xs: 220 }}
        data-search
      />
      <Select
        placeholder="All accounts"
        aria-label="Account"
        data={accounts.map(({ id, author }) => ({ value: id, label: author.name }))}
        value={filters.account ?? null}
        onChange={(account) => onChange({ account: account ?? '' })}
        clearable
        searchable
        w={{ base: 'calc(33.3% - 7px)', xs: 190 }}
      />
      <Select
        placeholder="All states"
        aria-label="State"
        data={POST_STATES.map((value) => ({ value, label: stateLabel(value) }))}
        value={filters.state ?? null}
        onChange={(state) => onChange({ state: state ?? '' })}
        clearable
        w={{ base: 'calc(33.3% - 7px)', xs: 150 }}
      />
      <FilterText
        value={filters.label ?? ''}
        onFilter={(label) => onChange({ label })}
        placeholder="Label"
        aria-label="Label"
        w={{ base: 'calc(33.3% - 7px)', xs: 120 }}
      />
    </Group>
  );
}
