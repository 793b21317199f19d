import { NavLink, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link, useLocation } from 'wouter';
import { call } from '../api/call';
import { Icon } from '../parts/Icon';
import { useRefresh } from '../live/liveContext';
import { useHasScope } from '../session/sessionContext';
import classes from './Navigation.module.css';
import { PAGES, type NavPage } from './routes';

export function Navigation({ onNavigate }: { onNavigate: () => void }) {
  const admin = useHasScope('admin');
  const pages = PAGES.filter((page) => page.scope !== 'admin' || admin);
  return (
    <div className={classes.root}>
      {pages
        .filter((page) => page.group === 'work')
        .map((page) => (
          <Entry key={page.path} page={page} onNavigate={onNavigate} />
        ))}
      <Text className={classes.group}>System</Text>
      {pages
        .filter((page) => page.group === 'system')
        .map((page) => (
          <Entry key={page.path} page={page} onNavigate={onNavigate} />
        ))}
    </div>
  );
}

function Entry({ page, onNavigate }: { page: NavPage; onNavigate: () => void }) {
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
      leftSection={<Icon name={page.icon} size={18} />}
      rightSection={page.path === '/dead' ? <DeadCount /> : undefined}
      onClick={onNavigate}
      className={classes.entry}
    />
  );
}

function DeadCount() {
  const { data } = useQuery({
    queryKey: ['stats', 'live'],
    queryFn: ({ signal }) => call('GET /stats', { query: { since: '5m', step: '5m' }, signal }),
    refetchInterval: useRefresh(15_000),
  });
  return data?.live.dead ? (
    <span className={classes.count}>{data.live.dead.toLocaleString('en')}</span>
  ) : null;
}
