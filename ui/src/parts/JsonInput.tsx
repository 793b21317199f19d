import { Button, Textarea } from '@mantine/core';
import { readJson } from './json';

interface JsonInputProps {
  label: string;
  description?: string;
  value: string;
  onChange: (text: string) => void;
  rows?: number;
  error?: string | null;
}

/** A JSON editor. It shows syntax errors while typing and keeps invalid text. */
export function JsonInput({ label, description, value, onChange, rows = 6, error }: JsonInputProps) {
  const read = readJson(value);
  return (
    <Textarea
      label={label}
      description={description}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      error={error ?? read.problem}
      autosize
      minRows={rows}
      maxRows={24}
      spellCheck={false}
      styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)', fontSize: 13 } }}
      rightSection={
        <Button
          size="compact-xs"
          variant="subtle"
          color="gray"
          disabled={read.problem !== null}
          onClick={() => onChange(JSON.stringify(read.value, null, 2))}
        >
          Format
        </Button>
      }
      rightSectionWidth={60}
      rightSectionProps={{ style: { alignItems: 'flex-start', paddingTop: 6 } }}
    />
  );
}
