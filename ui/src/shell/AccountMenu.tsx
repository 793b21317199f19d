import { ActionIcon, Badge, Group, Menu, Text } from '@mantine/core';
import { Icon } from '../parts/Icon';
import { useSession } from '../session/sessionContext';
import { Timestamp } from '../time/Timestamp';

export function AccountMenu({ onHelp }: { onHelp: () => void }) {
  const { me, signOut } = useSession();
  return (
    <Menu position="bottom-end" width={280} shadow="md">
      <Menu.Target>
        <ActionIcon size={32} aria-label="Account">
          <Icon name="user" size={18} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          {me.local ? (
            'Local access, no key needed'
          ) : (
            <>
              Key <code>{me.key}</code>
            </>
          )}
        </Menu.Label>
        <Group gap={6} px="sm" pb="xs">
          <Text size="xs">Tenant {me.tenant}</Text>
          {me.scopes.map((scope) => (
            <Badge key={scope} size="xs" variant="light" tt="none">
              {scope}
            </Badge>
          ))}
          {me.expires_at && (
            <Text size="xs" c="dimmed">
              Key expires <Timestamp at={me.expires_at} />
            </Text>
          )}
        </Group>
        <Menu.Divider />
        <Menu.Item leftSection={<Icon name="help" />} onClick={onHelp}>
          Keyboard shortcuts
        </Menu.Item>
        <Menu.Item
          leftSection={<Icon name="code" />}
          component="a"
          href="../docs"
          target="_blank"
          rel="noreferrer"
        >
          API documentation
        </Menu.Item>
        {!me.local && (
          <Menu.Item leftSection={<Icon name="cross" />} onClick={signOut}>
            Sign out
          </Menu.Item>
        )}
        <Menu.Label>Duetime {me.version}</Menu.Label>
      </Menu.Dropdown>
    </Menu>
  );
}
