import { ActionIcon, Menu, useMantineColorScheme, type MantineColorScheme } from '@mantine/core';
import { Icon } from '../../parts/Icon';
import { Glyph, type GlyphName } from '../parts/Glyph';
import { useStatus } from '../session/statusContext';

const THEMES: ReadonlyArray<[MantineColorScheme, string, GlyphName]> = [
  ['light', 'Light', 'sun'],
  ['dark', 'Dark', 'moon'],
  ['auto', 'Like the system', 'screen'],
];

/** Theme, help, and who is signed in. */
export function Menus({ onHelp }: { onHelp: () => void }) {
  const { status, signOut } = useStatus();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  return (
    <Menu position="bottom-end" width={240} shadow="md">
      <Menu.Target>
        <ActionIcon size={32} aria-label="Settings">
          <Glyph name="settings" size={18} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>Theme</Menu.Label>
        {THEMES.map(([scheme, label, glyph]) => (
          <Menu.Item
            key={scheme}
            leftSection={<Glyph name={glyph} />}
            rightSection={colorScheme === scheme ? <Icon name="check" /> : null}
            onClick={() => setColorScheme(scheme)}
            aria-current={colorScheme === scheme}
          >
            {label}
          </Menu.Item>
        ))}
        <Menu.Divider />
        <Menu.Item leftSection={<Icon name="help" />} onClick={onHelp}>
          Keyboard shortcuts
        </Menu.Item>
        <Menu.Item
          leftSection={<Icon name="code" />}
          component="a"
          href="api/v1/openapi.json"
          target="_blank"
          rel="noreferrer"
        >
          API description
        </Menu.Item>
        {status.auth !== 'none' && (
          <Menu.Item leftSection={<Icon name="cross" />} onClick={signOut}>
            Sign out
          </Menu.Item>
        )}
        <Menu.Label>Momentum {status.version}</Menu.Label>
      </Menu.Dropdown>
    </Menu>
  );
}
