import { Autocomplete, SegmentedControl } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { call } from '../api/call';
import type { FieldErrors } from './fieldErrors';
import { HttpFields } from './HttpFields';
import { Section } from './Section';
import type { TargetDraft } from './targetDraft';
import { TestCall } from './TestCall';

interface TargetFieldsProps {
  draft: TargetDraft;
  onChange: (next: Partial<TargetDraft>) => void;
  payload: unknown;
  errorAt: FieldErrors;
}

export function TargetFields({ draft, onChange, payload, errorAt }: TargetFieldsProps) {
  return (
    <Section title="What runs" description="Call a URL, or run a task of your program by name.">
      <SegmentedControl
        value={draft.kind}
        onChange={(kind) => onChange({ kind: kind as TargetDraft['kind'] })}
        data={[
          { value: 'http', label: 'HTTP call' },
          { value: 'task', label: 'Task' },
        ]}
        aria-label="Target type"
        w="fit-content"
      />
      {draft.kind === 'task' ? (
        <TaskName
          value={draft.task}
          onChange={(task) => onChange({ task })}
          error={errorAt('target.name') ?? errorAt('target')}
        />
      ) : (
        <>
          <HttpFields draft={draft} onChange={onChange} errorAt={errorAt} />
          <TestCall draft={draft} payload={payload} />
        </>
      )}
    </Section>
  );
}

function TaskName({
  value,
  onChange,
  error,
}: {
  value: string;
  onChange: (task: string) => void;
  error: string | undefined;
}) {
  const { data } = useQuery({
    queryKey: ['tasks'],
    queryFn: ({ signal }) => call('GET /tasks', { signal }),
    staleTime: 30_000,
  });
  const known = data?.items.map((task) => task.name) ?? [];
  const unknown = value.trim() !== '' && data !== undefined && !known.includes(value.trim());
  return (
    <Autocomplete
      label="Task"
      description={
        unknown
          ? 'No running node has this task. Jobs wait until one does.'
          : 'The registered name, e.g. @app.task("invoice.send")'
      }
      placeholder="invoice.send"
      data={known}
      value={value}
      onChange={onChange}
      error={error}
      required
    />
  );
}
