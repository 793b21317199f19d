import { NativeSelect, PasswordInput, TextInput } from '@mantine/core';
import type { ChannelField } from './channelKinds';

interface ChannelInputProps {
  field: ChannelField;
  /** Whether the server has this secret. */
  isStored: boolean;
  value: string;
  onChange: (text: string) => void;
  error: string | undefined;
}

/** One setting of a channel. */
export function ChannelInput({ field, isStored, value, onChange, error }: ChannelInputProps) {
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
  return (
    <PasswordInput
      {...text}
      autoComplete="new-password"
      aria-invalid={error !== undefined}
      description={field.help ?? 'Stored encrypted and never shown'}
      placeholder={isStored ? 'leave empty to keep it' : text.placeholder}
    />
  );
}
