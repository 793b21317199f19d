import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { call } from '../api/call';
import { Icon } from '../parts/Icon';
import { useRefresh } from '../live/liveContext';
import { useHasScope } from '../session/sessionContext';
import classes from './Navigation.module.css';
import { NavCount, NavEntry } from './NavEntry';
import { PAGES } from './routes';

export function Navigation({ onNavigate }: { onNavigate: () => void }) {
  const admin = useHasScope('admin');
  const pages = PAGES.filter((page) => page.scope !== 'admin' || admin);
  return (
    <div className={classes.root}>
      {pages
        .filter((page) => page.group === 'work')
        .map((page) => (
          <NavEntry
            key={page.path}
            page={page}
            icon={<Icon name={page.icon} size={18} />}
            badge={page.path === '/dead' ? <DeadCount /> : undefined}
            onNavigate={onNavigate}
          />
        ))}
      <Text className={classes.group}>System</Text>
      {pages
        .filter((page) => page.group === 'system')
        .map((page) => (
          <NavEntry
            key={page.path}
            page={page}
            icon={<Icon name={page.icon} size={18} />}
            onNavigate={onNavigate}
          />
        ))}
    </div>
  );
}

function DeadCount() {
  const { data } = useQuery({
    queryKey: ['stats', 'live'],
    queryFn: ({ signal }) => call('GET /stats', { query: { since: '5m', step: '5m' }, signal }),
    refetchInterval: useRefresh(15_000),
  });
  return <NavCount count={data?.live.dead} />;
}
