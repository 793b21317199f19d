import { Button, Pill, Popover, Stack } from '@mantine/core';
import { FilterText } from './FilterText';
import { Icon } from './Icon';

interface MoreFiltersProps<Name extends string> {
  fields: ReadonlyArray<{ name: Name; label: string; placeholder: string; type?: string }>;
  filters: Partial<Record<Name, string>>;
  onChange: (change: Partial<Record<Name, string>>) => void;
}

/** The seldom filters behind a button; those in use beside it, each with a way out. */
export function MoreFilters<Name extends string>({ fields, filters, onChange }: MoreFiltersProps<Name>) {
  const used = fields.filter(({ name }) => filters[name]);
  const only = (name: Name, value: string) => onChange({ [name]: value } as Partial<Record<Name, string>>);
  return (
    <>
      <Popover position="bottom-start" shadow="md" width={280} trapFocus>
        <Popover.Target>
          <Button variant="default" leftSection={<Icon name="filter" size={15} />}>
            Filters
          </Button>
        </Popover.Target>
        <Popover.Dropdown>
          <Stack gap="xs">
            {fields.map(({ name, ...field }) => (
              <FilterText key={name} {...field} value={filters[name] ?? ''} onFilter={(value) => only(name, value)} />
            ))}
          </Stack>
        </Popover.Dropdown>
      </Popover>
      {used.map(({ name, label }) => (
        <Pill key={name} withRemoveButton onRemove={() => only(name, '')} removeButtonProps={{ 'aria-label': `Remove the filter ${label}` }} size="md">
          {label}: {filters[name]}
        </Pill>
      ))}
    </>
  );
}
