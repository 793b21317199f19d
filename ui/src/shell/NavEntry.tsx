import { NavLink } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link, useLocation } from 'wouter';
import classes from './Navigation.module.css';

interface NavEntryProps {
  page: { path: string; label: string };
  icon: ReactNode;
  badge?: ReactNode;
  onNavigate: () => void;
}

export function NavEntry({ page, icon, badge, onNavigate }: NavEntryProps) {
  const [location] = useLocation();
  const active =
    page.path === '/' ? location === '/' : location === page.path || location.startsWith(`${page.path}/`);
  return (
    <NavLink
      component={Link}
      href={page.path}
      active={active}
      aria-current={active ? 'page' : undefined}
      label={page.label}
      leftSection={icon}
      rightSection={badge}
      onClick={onNavigate}
      className={classes.entry}
    />
  );
}

/** The number of things that need attention; nothing for none. */
export function NavCount({ count }: { count: number | undefined }) {
  return count ? <span className={classes.count}>{count.toLocaleString('en')}</span> : null;
}
