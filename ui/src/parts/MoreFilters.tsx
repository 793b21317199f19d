import { Button, Pill, Popover, Stack } from '@mantine/core';
import { FilterText } from './FilterText';
import { Icon } from './Icon';

interface MoreFiltersProps<Name extends string> {
  fields: ReadonlyArray<{ name: Name; label: string; placeholder: string; type?: string }>;
  filters: Partial<Record<Name, string>>;
  onChange: (change: Partial<Record<Name, string>>) => void;
}

/** Less common filters behind a button, and the active ones next to it, each with a remove button. */
export function MoreFilters<Name extends string>({ fields, filters, onChange }: MoreFiltersProps<Name>) {
  const active = fields.filter(({ name }) => filters[name]);
  const setFilter = (name: Name, value: string) =>
    onChange({ [name]: value } as Partial<Record<Name, string>>);
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
              <FilterText
                key={name}
                {...field}
                value={filters[name] ?? ''}
                onFilter={(value) => setFilter(name, value)}
              />
            ))}
          </Stack>
        </Popover.Dropdown>
      </Popover>
      {active.map(({ name, label }) => (
        <Pill
          key={name}
          withRemoveButton
          onRemove={() => setFilter(name, '')}
          removeButtonProps={{ 'aria-label': `Remove filter ${label}` }}
          size="md"
        >
          {label}: {filters[name]}
        </Pill>
      ))}
    </>
  );
}
