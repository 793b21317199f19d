import { Input, MultiSelect, NativeSelect, SegmentedControl, Switch, TextInput } from '@mantine/core';
import { useState } from 'react';
import { call } from '../../api/call';
import type { AlertRule } from '../../api/types';
import { CONDITIONS, type ConditionName } from './conditions';
import { RuleLimits } from './RuleLimits';
import { RulePicture } from './RulePicture';
import { RuleScope } from './RuleScope';
import { bodyOfRule, draftOfRule, EMPTY_RULE, limitsOf, type RuleDraft } from './ruleDraft';
import { SaveForm } from './SaveForm';
import { useSave } from './useSave';

interface RuleDialogProps {
  /** The rule to edit; without it a new one. */
  rule?: AlertRule;
  names: readonly string[];
  channels: readonly string[];
  onClose: () => void;
}

const CHOICES = Object.entries(CONDITIONS).map(([value, { label }]) => ({ value, label }));
const SEVERITIES = [
  { value: 'critical', label: 'Critical' },
  { value: 'warning', label: 'Warning' },
  { value: 'info', label: 'Info' },
];

export function RuleDialog({ rule, names, channels, onClose }: RuleDialogProps) {
  const [draft, setDraft] = useState<RuleDraft>(() => (rule ? draftOfRule(rule) : EMPTY_RULE));
  const change = (next: Partial<RuleDraft>) => setDraft((known) => ({ ...known, ...next }));
  const name = draft.name.trim();
  const save = useSave({
    noun: 'rule',
    name,
    isTaken: !rule && names.includes(name),
    send: () =>
      call('PUT /alerts/rules/{rule}', {
        path: { rule: name },
        body: bodyOfRule(draft),
        ifMatch: rule?.version ?? 0,
      }),
    onSaved: onClose,
  });
  const { errorAt } = save;
  return (
    <SaveForm noun="rule" edited={rule} save={save} onClose={onClose}>
      {!rule && (
        <TextInput
          label="Name"
          description="The name of a built-in rule replaces that one"
          placeholder="nightly report"
          value={draft.name}
          onChange={(event) => change({ name: event.currentTarget.value })}
          error={errorAt('name') ?? errorAt('rule')}
          required
          data-autofocus
        />
      )}
      <NativeSelect
        label="Condition"
        description={CONDITIONS[draft.condition].help}
        inputWrapperOrder={['label', 'input', 'description', 'error']}
        data={CHOICES}
        value={draft.condition}
        onChange={(event) => {
          const condition = event.currentTarget.value as ConditionName;
          change({ condition, ...limitsOf(condition) });
        }}
        error={errorAt('condition')}
      />
      <RuleScope draft={draft} onChange={change} errorAt={errorAt} />
      <RuleLimits draft={draft} onChange={change} errorAt={errorAt} />
      <MultiSelect
        label="Channels"
        description="Those that are told; empty: all"
        placeholder={draft.channels.length === 0 ? 'all channels' : ''}
        data={[...new Set([...channels, ...draft.channels])]}
        value={draft.channels}
        onChange={(chosen) => change({ channels: chosen })}
        error={errorAt('channels')}
        searchable
        hidePickedOptions
        nothingFoundMessage="No such channel"
      />
      <Input.Wrapper label="Severity" labelElement="div">
        <SegmentedControl
          display="flex"
          w="fit-content"
          data={SEVERITIES}
          value={draft.severity}
          onChange={(severity) => change({ severity: severity as RuleDraft['severity'] })}
          aria-label="Severity"
        />
      </Input.Wrapper>
      <Switch
        label="On"
        description="A rule that is off exempts what it names"
        checked={draft.enabled}
        onChange={(event) => change({ enabled: event.currentTarget.checked })}
      />
      <RulePicture draft={draft} />
    </SaveForm>
  );
}
