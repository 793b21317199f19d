import { Badge, Group, Menu, Text } from '@mantine/core';
import { Icon } from '../parts/Icon';
import { useSession } from '../session/sessionContext';
import { Timestamp } from '../time/Timestamp';
import { CornerMenu } from './CornerMenu';

const API = { label: 'API documentation', href: '../docs' };

export function AccountMenu({ onHelp }: { onHelp: () => void }) {
  const { me, signOut } = useSession();
  return (
    <CornerMenu
      label="Account"
      icon={<Icon name="user" size={18} />}
      onHelp={onHelp}
      api={API}
      onSignOut={me.local ? null : signOut}
      version={`Duetime ${me.version}`}
    >
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
    </CornerMenu>
  );
}
