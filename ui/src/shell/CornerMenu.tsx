import { ActionIcon, Menu } from '@mantine/core';
import type { ReactNode } from 'react';
import { Icon } from '../parts/Icon';

interface CornerMenuProps {
  label: string;
  icon: ReactNode;
  onHelp: () => void;
  /** The description of the API. */
  api: { label: string; href: string };
  /** null: users are not known. */
  onSignOut: (() => void) | null;
  /** The product and its version. */
  version: string;
  /** What the product has above the common entries. */
  children: ReactNode;
}

/** The menu in the corner of the page: help, the API, sign out, and the version. */
export function CornerMenu({ label, icon, onHelp, api, onSignOut, version, children }: CornerMenuProps) {
  return (
    <Menu position="bottom-end" width={280} shadow="md">
      <Menu.Target>
        <ActionIcon size={32} aria-label={label}>
          {icon}
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {children}
        <Menu.Divider />
        <Menu.Item leftSection={<Icon name="help" />} onClick={onHelp}>
          Keyboard shortcuts
        </Menu.Item>
        <Menu.Item
          leftSection={<Icon name="code" />}
          component="a"
          href={api.href}
          target="_blank"
          rel="noreferrer"
        >
          {api.label}
        </Menu.Item>
        {onSignOut && (
          <Menu.Item leftSection={<Icon name="cross" />} onClick={onSignOut}>
            Sign out
          </Menu.Item>
        )}
        <Menu.Label>{version}</Menu.Label>
      </Menu.Dropdown>
    </Menu>
  );
}
