import { TextInput, type TextInputProps } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { useState } from 'react';

interface FilterTextProps extends Omit<TextInputProps, 'value' | 'onChange'> {
  value: string;
  onFilter: (text: string) => void;
}

const DEBOUNCE = 180;

/** A text filter. It applies when the user stops typing. */
export function FilterText({ value, onFilter, ...rest }: FilterTextProps) {
  const [text, setText] = useState(value);
  const [applied, setApplied] = useState(value);
  const apply = useDebouncedCallback((next: string) => {
    setApplied(next);
    onFilter(next);
  }, DEBOUNCE);
  if (value !== applied) {
    setText(value);
    setApplied(value);
  }
  return (
    <TextInput
      {...rest}
      value={text}
      onChange={(event) => {
        setText(event.currentTarget.value);
        apply(event.currentTarget.value.trim());
      }}
    />
  );
}
