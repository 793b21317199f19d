import { ActionIcon, Tooltip, useComputedColorScheme, useMantineColorScheme } from '@mantine/core';
import { Icon } from '../parts/Icon';

export function ThemeToggle() {
  const { setColorScheme } = useMantineColorScheme();
  const other = useComputedColorScheme('light') === 'dark' ? 'light' : 'dark';
  return (
    <Tooltip label={`Switch to ${other} theme`}>
      <ActionIcon size={32} onClick={() => setColorScheme(other)} aria-label={`Switch to ${other} theme`}>
        <Icon name={other === 'dark' ? 'moon' : 'sun'} size={18} />
      </ActionIcon>
    </Tooltip>
  );
}
