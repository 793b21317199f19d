import { ActionIcon, Button, Group, Input, PasswordInput, Stack, TextInput } from '@mantine/core';
import { Icon } from '../parts/Icon';
import type { Pair } from './pairs';

interface PairsInputProps {
  label: string;
  description?: string;
  pairs: readonly Pair[];
  onChange: (pairs: Pair[]) => void;
  keyPlaceholder: string;
  secret?: boolean;
  error?: string | undefined;
}

/** A list of names and values, one pair per row. */
export function PairsInput({
  label,
  description,
  pairs,
  onChange,
  keyPlaceholder,
  secret = false,
  error,
}: PairsInputProps) {
  const change = (index: number, next: Partial<Pair>) =>
    onChange(pairs.map((pair, position) => (position === index ? { ...pair, ...next } : pair)));
  const Value = secret ? PasswordInput : TextInput;
  return (
    <Input.Wrapper label={label} labelElement="div" description={description} error={error}>
      <Stack gap={6} mt={4}>
        {pairs.map((pair, index) => (
          // oxlint-disable-next-line react/no-array-index-key -- rows have no identity except their position
          <Group key={index} gap={6} wrap="nowrap">
            <TextInput
              aria-label={`${label}: name ${index + 1}`}
              placeholder={keyPlaceholder}
              value={pair.key}
              onChange={(event) => change(index, { key: event.currentTarget.value })}
              flex={1}
            />
            <Value
              aria-label={`${label}: value ${index + 1}`}
              placeholder="value"
              value={pair.value}
              onChange={(event) => change(index, { value: event.currentTarget.value })}
              flex={2}
              autoComplete="off"
            />
            <ActionIcon
              aria-label={`Remove ${pair.key || 'this row'}`}
              onClick={() => onChange(pairs.filter((_, position) => position !== index))}
            >
              <Icon name="cross" />
            </ActionIcon>
          </Group>
        ))}
        <Button
          variant="subtle"
          color="gray"
          size="compact-sm"
          leftSection={<Icon name="plus" size={14} />}
          onClick={() => onChange([...pairs, { key: '', value: '' }])}
          w="fit-content"
        >
          Add
        </Button>
      </Stack>
    </Input.Wrapper>
  );
}
