import { Menu, useMantineColorScheme, type MantineColorScheme } from '@mantine/core';
import { Icon } from '../../parts/Icon';
import { CornerMenu } from '../../shell/CornerMenu';
import { Glyph, type GlyphName } from '../parts/Glyph';
import { useStatus } from '../session/statusContext';

const THEMES: ReadonlyArray<[MantineColorScheme, string, GlyphName]> = [
  ['light', 'Light', 'sun'],
  ['dark', 'Dark', 'moon'],
  ['auto', 'Like the system', 'screen'],
];
const API = { label: 'API description', href: 'api/v1/openapi.json' };

/** Theme, help, and who is signed in. */
export function Menus({ onHelp }: { onHelp: () => void }) {
  const { status, signOut } = useStatus();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  return (
    <CornerMenu
      label="Settings"
      icon={<Glyph name="settings" size={18} />}
      onHelp={onHelp}
      api={API}
      onSignOut={status.auth === 'none' ? null : signOut}
      version={`Momentum ${status.version}`}
    >
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
    </CornerMenu>
  );
}
