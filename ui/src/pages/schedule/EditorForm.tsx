import { Stack, TextInput } from '@mantine/core';
import { RunFields } from '../../forms/RunFields';
import { Section } from '../../forms/Section';
import { TargetFields } from '../../forms/TargetFields';
import { JsonInput } from '../../parts/JsonInput';
import { readJson } from '../../parts/json';
import { useViewerZone } from '../../time/viewerZone';
import classes from './EditorForm.module.css';
import { PolicyFields } from './PolicyFields';
import { PreviewPanel } from './PreviewPanel';
import { bodyOf, type ScheduleDraft } from './scheduleDraft';
import { usePreview } from './usePreview';
import { WhenFields } from './WhenFields';
import { fieldErrors, type FieldErrors } from '../../forms/fieldErrors';

interface EditorFormProps {
  draft: ScheduleDraft;
  onChange: (next: Partial<ScheduleDraft>) => void;
  errorAt: FieldErrors;
  /** A schedule keeps its name. */
  isNew: boolean;
}

/** The definition as a form or as JSON, beside what it means. */
export function EditorForm({ draft, onChange, errorAt, isNew }: EditorFormProps) {
  const { body, problem } = bodyOf(draft);
  const viewer = useViewerZone();
  const preview = usePreview(body, body.when !== undefined && problem === null);
  const whenError = fieldErrors(preview.error)(`when.${draft.whenKind}`);
  return (
    <div className={classes.root}>
      <Stack gap="md" miw={0}>
        {draft.json !== null ? (
          <Section title="Definition" about="What the API takes. The form shows the same.">
            <JsonInput label="JSON" value={draft.json} onChange={(json) => onChange({ json })} rows={20} />
          </Section>
        ) : (
          <>
            {isNew && (
              <Section title="Name" about="Unique; how it is found and spoken of.">
                <TextInput aria-label="Name" placeholder="nightly-report" value={draft.name} onChange={(event) => onChange({ name: event.currentTarget.value })} error={errorAt('name')} required data-autofocus />
              </Section>
            )}
            <WhenFields draft={draft} onChange={onChange} error={whenError ?? errorAt('when')} errorAt={errorAt} />
            <TargetFields draft={draft} onChange={onChange} payload={readJson(draft.payload).value} errorAt={errorAt} />
            <Section title="Payload" about={draft.kind === 'task' ? "The task's arguments, by name." : 'What is sent with the call.'}>
              <JsonInput label="Payload (JSON)" value={draft.payload} onChange={(payload) => onChange({ payload })} error={errorAt('payload') ?? null} rows={4} />
            </Section>
            <PolicyFields draft={draft} onChange={onChange} errorAt={errorAt} />
            <RunFields draft={draft} onChange={onChange} errorAt={errorAt} />
          </>
        )}
      </Stack>
      <div>
        <PreviewPanel preview={preview.data} error={preview.error} zone={draft.whenKind === 'every' ? viewer : draft.tz} />
      </div>
    </div>
  );
}
