import { Switch, Table, Text } from '@mantine/core';
import { call, type Body } from '../../api/call';
import type { AlertRule } from '../../api/types';
import { useAction } from '../../parts/useAction';
import { useHasScope } from '../../session/sessionContext';
import { AlertSection } from './AlertSection';

export function RuleTable({ rules }: { rules: AlertRule[] }) {
  const canManage = useHasScope('manage');
  const act = useAction();
  const set = (rule: AlertRule, enabled: boolean) =>
    act(
      () => call('PUT /alerts/rules/{rule}', { path: { rule: rule.name }, body: bodyOf(rule, enabled) }),
      `${rule.name} is ${enabled ? 'on' : 'off'}`,
    );
  return (
    <AlertSection
      title="Rules"
      empty="No rules."
      columns={['Name', 'Applies to', 'Limit', 'Channels', 'Severity', 'On']}
      isEmpty={rules.length === 0}
    >
      {rules.map((rule) => (
        <Table.Tr key={rule.name}>
          <Table.Td>
            <Text size="sm" fw={550}>
              {rule.name}
            </Text>
            <Text size="xs" c="dimmed">
              {rule.version === 0 ? 'built in' : rule.condition.replace('_', ' ')}
            </Text>
          </Table.Td>
          <Table.Td>
            <Text size="sm">{[rule.schedule, rule.queue].filter(Boolean).join(', ') || 'all'}</Text>
          </Table.Td>
          <Table.Td>
            <Text size="sm">{limitText(rule)}</Text>
          </Table.Td>
          <Table.Td>
            <Text size="sm">{rule.channels.join(', ') || 'all'}</Text>
          </Table.Td>
          <Table.Td>
            <Text size="sm">{rule.severity}</Text>
          </Table.Td>
          <Table.Td>
            <Switch
              checked={rule.enabled}
              disabled={!canManage}
              aria-label={`Rule ${rule.name}`}
              onChange={(event) => set(rule, event.currentTarget.checked)}
            />
          </Table.Td>
        </Table.Tr>
      ))}
    </AlertSection>
  );
}

function limitText(rule: AlertRule): string {
  if (rule.ratio !== null) return `${Math.round(rule.ratio * 100)} % in ${rule.window ?? ''}`;
  return rule.after ?? String(rule.count);
}

/** Only the fields that the rule has. */
function bodyOf(rule: AlertRule, enabled: boolean): Body<'PUT /alerts/rules/{rule}'> {
  const { condition, schedule, queue, after, count, ratio, window, channels, severity } = rule;
  return {
    condition,
    channels,
    severity,
    enabled,
    ...(schedule !== null && { schedule }),
    ...(queue !== null && { queue }),
    ...(after !== null && { after }),
    ...(count !== null && { count }),
    ...(ratio !== null && { ratio }),
    ...(window !== null && { window }),
  };
}
