import { Autocomplete, SegmentedControl, Switch, TextInput } from '@mantine/core';
import { JsonInput } from '../parts/JsonInput';
import { useTasks } from '../parts/useTask';
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
    <Section
      title="What runs"
      description="Call a URL, run a task of your program by name, start a program on a node, or publish a message."
    >
      <SegmentedControl
        value={draft.kind}
        onChange={(kind) => onChange({ kind: kind as TargetDraft['kind'] })}
        data={[
          { value: 'http', label: 'HTTP call' },
          { value: 'task', label: 'Task' },
          { value: 'command', label: 'Command' },
          { value: 'publish', label: 'Message' },
        ]}
        aria-label="Target type"
        w="fit-content"
      />
      {draft.kind === 'task' && (
        <TaskName
          value={draft.task}
          onChange={(task) => onChange({ task })}
          error={errorAt('target.name') ?? errorAt('target')}
        />
      )}
      {draft.kind === 'command' && <CommandFields draft={draft} onChange={onChange} errorAt={errorAt} />}
      {draft.kind === 'publish' && <PublishFields draft={draft} onChange={onChange} errorAt={errorAt} />}
      {draft.kind === 'http' && (
        <>
          <HttpFields draft={draft} onChange={onChange} errorAt={errorAt} />
          <TestCall draft={draft} payload={payload} />
        </>
      )}
    </Section>
  );
}

function CommandFields({ draft, onChange, errorAt }: Omit<TargetFieldsProps, 'payload'>) {
  return (
    <>
      <JsonInput
        label="Program and arguments (JSON)"
        description='A list of words, without a shell: ["/usr/local/bin/backup", "--all"]. For admins, on nodes with --allow-commands.'
        value={draft.argv}
        onChange={(argv) => onChange({ argv })}
        error={errorAt('target.argv') ?? errorAt('target.type') ?? errorAt('target') ?? null}
        rows={1}
      />
      <TextInput
        label="Folder"
        description="The folder in which it runs; empty: that of the node."
        placeholder="/srv/shop"
        value={draft.cwd}
        onChange={(event) => onChange({ cwd: event.currentTarget.value })}
        error={errorAt('target.cwd')}
      />
    </>
  );
}

function PublishFields({ draft, onChange, errorAt }: Omit<TargetFieldsProps, 'payload'>) {
  return (
    <>
      <TextInput
        label="Destination"
        description="A name from the setting destinations of the nodes."
        placeholder="orders"
        value={draft.destination}
        onChange={(event) => onChange({ destination: event.currentTarget.value })}
        error={errorAt('target.destination') ?? errorAt('target')}
        required
      />
      <TextInput
        label="Key"
        description="The routing key, partition key or message group; empty: that of the destination."
        value={draft.messageKey}
        onChange={(event) => onChange({ messageKey: event.currentTarget.value })}
        error={errorAt('target.key')}
      />
      <Switch
        label="Wait for a report"
        description="The consumer reports the end of the job within its timeout. Otherwise the job ends when the broker confirms the message."
        checked={draft.needsReport}
        onChange={(event) => onChange({ needsReport: event.currentTarget.checked })}
      />
    </>
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
  const tasks = useTasks();
  const known = tasks?.map((task) => task.name) ?? [];
  const unknown = value.trim() !== '' && tasks !== undefined && !known.includes(value.trim());
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
