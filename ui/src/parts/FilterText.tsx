import { TextInput, type TextInputProps } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { useState } from 'react';

interface FilterTextProps extends Omit<TextInputProps, 'value' | 'onChange'> {
  value: string;
  onFilter: (text: string) => void;
}

const PAUSE = 180;

/** A filter that is typed: shown at once, asked for when the typing pauses. */
export function FilterText({ value, onFilter, ...rest }: FilterTextProps) {
  const [text, setText] = useState(value);
  const [told, setTold] = useState(value);
  const tell = useDebouncedCallback((next: string) => {
    setTold(next);
    onFilter(next);
  }, PAUSE);
  if (value !== told) {
    setText(value);
    setTold(value);
  }
  return (
    <TextInput
      {...rest}
      value={text}
      onChange={(event) => {
        setText(event.currentTarget.value);
        tell(event.currentTarget.value.trim());
      }}
    />
  );
}
