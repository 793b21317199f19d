import { Checkbox, NativeSelect, PasswordInput, TextInput } from '@mantine/core';
import type { ChannelField } from './channelKinds';

interface ChannelInputProps {
  field: ChannelField;
  /** Whether the server has this secret. */
  isStored: boolean;
  value: string;
  onChange: (text: string) => void;
  /** Whether the user removes the stored secret. */
  isRemoved: boolean;
  onRemove: (isRemoved: boolean) => void;
  error: string | undefined;
}

/** One setting of a channel. */
export function ChannelInput(props: ChannelInputProps) {
  const { field, isStored, value, onChange, isRemoved, onRemove, error } = props;
  const common = {
    label: field.label,
    value,
    error,
    onChange: (event: { currentTarget: { value: string } }) => onChange(event.currentTarget.value),
  };
  if (field.choices) return <NativeSelect {...common} data={[...field.choices]} />;
  const text = {
    ...common,
    description: field.help,
    placeholder: field.placeholder,
    required: (field.isRequired ?? false) && !isStored,
    autoComplete: 'off',
  };
  if (!field.isSecret) return <TextInput {...text} />;
  const kept = isRemoved ? 'it will be removed' : 'leave empty to keep it';
  return (
    <div>
      <PasswordInput
        {...text}
        autoComplete="new-password"
        aria-invalid={error !== undefined}
        description={field.help ?? 'Stored encrypted and never shown'}
        placeholder={isStored ? kept : text.placeholder}
        readOnly={isRemoved}
      />
      {isStored && !field.isRequired && !field.removedWith && (
        <Checkbox
          mt="xs"
          size="xs"
          label={`Remove the stored ${field.label.toLowerCase()}`}
          checked={isRemoved}
          onChange={(event) => onRemove(event.currentTarget.checked)}
        />
      )}
    </div>
  );
}
