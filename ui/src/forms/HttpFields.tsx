import { Group, PasswordInput, SegmentedControl, Select, Switch, TextInput, Input } from '@mantine/core';
import { MoreOptions } from '../parts/MoreOptions';
import type { FieldErrors } from './fieldErrors';
import { PairsInput } from './PairsInput';
import { METHODS, type TargetDraft } from './targetDraft';

interface HttpFieldsProps {
  draft: TargetDraft;
  onChange: (next: Partial<TargetDraft>) => void;
  errorAt: FieldErrors;
}

export function HttpFields({ draft, onChange, errorAt }: HttpFieldsProps) {
  return (
    <>
      <Group gap="xs" wrap="nowrap" align="flex-start">
        <Select
          label="Method"
          data={METHODS}
          value={draft.method}
          onChange={(method) => onChange({ method: method ?? 'POST' })}
          w={110}
          allowDeselect={false}
          error={errorAt('target.method')}
        />
        <TextInput
          label="URL"
          placeholder="https://agent.example.org/run"
          value={draft.url}
          onChange={(event) => onChange({ url: event.currentTarget.value })}
          flex={1}
          error={errorAt('target.url') ?? errorAt('target')}
          required
        />
      </Group>
      <PairsInput
        label="Headers"
        keyPlaceholder="X-Team"
        pairs={draft.headers}
        onChange={(headers) => onChange({ headers })}
        error={errorAt('target.headers')}
      />
      <PairsInput
        label="Secret headers"
        description="Encrypted at rest and never shown again. *** keeps the stored value."
        keyPlaceholder="Authorization"
        pairs={draft.secrets}
        onChange={(secrets) => onChange({ secrets })}
        error={errorAt('target.secret_headers')}
        secret
      />
      <MoreOptions label="More call options" isUsed={false} gap="md">
        <Group gap="md" align="flex-start" grow>
          <TextInput
            label="Call timeout"
            description="For one call, e.g. 30s"
            value={draft.callTimeout}
            onChange={(event) => onChange({ callTimeout: event.currentTarget.value })}
            error={errorAt('target.timeout')}
          />
          <TextInput
            label="Success codes"
            description="e.g. 2xx, 304, 200-299"
            value={draft.success}
            onChange={(event) => onChange({ success: event.currentTarget.value })}
            error={errorAt('target.success')}
          />
        </Group>
        <Input.Wrapper
          label="Body"
          labelElement="div"
          description="Send the payload as JSON, or as plain text"
        >
          <SegmentedControl
            mt={4}
            display="flex"
            w="fit-content"
            value={draft.body}
            onChange={(body) => onChange({ body: body as TargetDraft['body'] })}
            data={[
              { value: 'json', label: 'JSON' },
              { value: 'raw', label: 'Plain text' },
            ]}
            aria-label="Body"
          />
        </Input.Wrapper>
        <PasswordInput
          label="Signing secret"
          description="Standard Webhooks secret (whsec_…). It lets the receiver verify the sender."
          value={draft.signingSecret}
          onChange={(event) => onChange({ signingSecret: event.currentTarget.value })}
          error={errorAt('target.signing_secret')}
          autoComplete="off"
        />
        <Switch
          label="Asynchronous: the receiver answers 202 and reports later"
          description="The job keeps running until the receiver reports its outcome"
          checked={draft.isAsync}
          onChange={(event) => onChange({ isAsync: event.currentTarget.checked })}
        />
      </MoreOptions>
    </>
  );
}
