import { Stack, TextInput } from '@mantine/core';
import { RunFields } from '../../forms/RunFields';
import { Section } from '../../forms/Section';
import { PAYLOAD_USE } from '../../forms/targetDraft';
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
  /** Only a new schedule can be named. */
  isNew: boolean;
}

/** The definition as a form or as JSON, next to a preview of its fires. */
export function EditorForm({ draft, onChange, errorAt, isNew }: EditorFormProps) {
  const { body, problem } = bodyOf(draft);
  const viewer = useViewerZone();
  const preview = usePreview(body, body.when !== undefined && problem === null);
  const whenError = fieldErrors(preview.error)(`when.${draft.whenKind}`);
  return (
    <div className={classes.root}>
      <Stack gap="md" miw={0}>
        {draft.json !== null ? (
          <Section
            title="Definition"
            description="The request body of the API. It has the same content as the form."
          >
            <JsonInput label="JSON" value={draft.json} onChange={(json) => onChange({ json })} rows={20} />
          </Section>
        ) : (
          <>
            {isNew && (
              <Section title="Name" description="A unique name.">
                <TextInput
                  aria-label="Name"
                  placeholder="nightly-report"
                  value={draft.name}
                  onChange={(event) => onChange({ name: event.currentTarget.value })}
                  error={errorAt('name')}
                  required
                  data-autofocus
                />
              </Section>
            )}
            <WhenFields
              draft={draft}
              onChange={onChange}
              error={whenError ?? errorAt('when')}
              errorAt={errorAt}
            />
            <TargetFields
              draft={draft}
              onChange={onChange}
              payload={readJson(draft.payload).value}
              errorAt={errorAt}
            />
            <Section title="Payload" description={PAYLOAD_USE[draft.kind]}>
              <JsonInput
                label="Payload (JSON)"
                value={draft.payload}
                onChange={(payload) => onChange({ payload })}
                error={errorAt('payload') ?? null}
                rows={4}
              />
            </Section>
            <PolicyFields draft={draft} onChange={onChange} errorAt={errorAt} />
            <RunFields draft={draft} onChange={onChange} errorAt={errorAt} />
          </>
        )}
      </Stack>
      <div>
        <PreviewPanel
          preview={preview.data}
          error={preview.error}
          zone={draft.whenKind === 'every' ? viewer : draft.tz}
        />
      </div>
    </div>
  );
}
