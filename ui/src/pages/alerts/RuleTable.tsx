import { Button, Group, Switch, Table, Text } from '@mantine/core';
import { useState } from 'react';
import { call } from '../../api/call';
import type { AlertRule } from '../../api/types';
import { ConfirmDialog } from '../../parts/ConfirmDialog';
import { Icon } from '../../parts/Icon';
import { useAction } from '../../parts/useAction';
import { useHasScope } from '../../session/sessionContext';
import { AlertSection } from './AlertSection';
import { conditionLabel, describeRule, isBuiltIn } from './conditions';
import { RowButton } from './RowButton';
import { RuleDialog } from './RuleDialog';
import { bodyOfRule, draftOfRule } from './ruleDraft';

interface RuleTableProps {
  rules: AlertRule[];
  channels: readonly string[];
}

export function RuleTable({ rules, channels }: RuleTableProps) {
  const canManage = useHasScope('manage');
  const act = useAction();
  const [editing, setEditing] = useState<AlertRule | 'new' | null>(null);
  const [removing, setRemoving] = useState<AlertRule | null>(null);
  const set = (rule: AlertRule, enabled: boolean) =>
    act(
      () =>
        call('PUT /alerts/rules/{rule}', {
          path: { rule: rule.name },
          body: bodyOfRule({ ...draftOfRule(rule), enabled }),
          ifMatch: rule.version,
        }),
      `${rule.name} is ${enabled ? 'on' : 'off'}`,
    );
  return (
    <>
      <AlertSection
        title="Rules"
        description="For each schedule and queue the first rule of a condition that matches it applies."
        actions={
          <Button
            variant="default"
            leftSection={<Icon name="plus" />}
            disabled={!canManage}
            onClick={() => setEditing('new')}
          >
            New rule
          </Button>
        }
        empty="No rules."
        columns={['Name', 'What happens', 'Severity', 'On', 'Actions']}
        isEmpty={rules.length === 0}
      >
        {rules.map((rule) => (
          <Table.Tr key={rule.name}>
            <Table.Td>
              <Text size="sm" fw={550}>
                {rule.name}
              </Text>
              <Text size="xs" c="dimmed">
                {originOf(rule)}
              </Text>
            </Table.Td>
            <Table.Td>
              <Text size="sm" {...(!rule.enabled && { c: 'dimmed' })}>
                {describeRule(rule)}
              </Text>
            </Table.Td>
            <Table.Td data-label="Severity">
              <Text size="sm">{rule.severity}</Text>
            </Table.Td>
            <Table.Td data-label="On">
              <Switch
                checked={rule.enabled}
                disabled={!canManage}
                aria-label={`Rule ${rule.name}`}
                onChange={(event) => set(rule, event.currentTarget.checked)}
              />
            </Table.Td>
            <Table.Td>
              <Group gap="xs" wrap="nowrap" justify="flex-end">
                <RowButton verb="Edit" subject={`rule ${rule.name}`} onClick={() => setEditing(rule)} />
                {rule.version > 0 && (
                  <RowButton
                    verb={isBuiltIn(rule.name) ? 'Reset' : 'Remove'}
                    subject={`rule ${rule.name}`}
                    isDangerous
                    onClick={() => setRemoving(rule)}
                  />
                )}
              </Group>
            </Table.Td>
          </Table.Tr>
        ))}
      </AlertSection>
      {editing !== null && (
        <RuleDialog
          {...(editing !== 'new' && { rule: editing })}
          names={rules.filter((rule) => rule.version > 0).map((rule) => rule.name)}
          channels={channels}
          onClose={() => setEditing(null)}
        />
      )}
      {removing !== null && (
        <ConfirmDialog
          title={isBuiltIn(removing.name) ? `Reset ${removing.name}` : `Remove ${removing.name}`}
          verb={isBuiltIn(removing.name) ? 'Reset' : 'Remove'}
          onClose={() => setRemoving(null)}
          onConfirm={() =>
            act(
              () => call('DELETE /alerts/rules/{rule}', { path: { rule: removing.name } }),
              `${removing.name} ${isBuiltIn(removing.name) ? 'reset' : 'removed'}`,
            )
          }
        >
          {isBuiltIn(removing.name)
            ? 'The built-in rule applies again.'
            : 'The next rule of this condition that matches applies instead.'}
        </ConfirmDialog>
      )}
    </>
  );
}

function originOf({ name, condition, version }: AlertRule): string {
  if (version === 0) return 'built in';
  return isBuiltIn(name) ? 'replaces the built-in rule' : conditionLabel(condition);
}
