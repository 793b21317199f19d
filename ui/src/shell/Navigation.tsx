import { NavLink, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link, useLocation } from 'wouter';
import { call } from '../api/call';
import { Icon } from '../parts/Icon';
import { useRefresh } from '../live/liveContext';
import { useMay } from '../session/sessionContext';
import classes from './Navigation.module.css';
import { PLACES, type Place } from './places';

export function Navigation({ onNavigate }: { onNavigate: () => void }) {
  const admin = useMay('admin');
  const shown = PLACES.filter((place) => place.needs !== 'admin' || admin);
  return (
    <div className={classes.root}>
      {shown.filter((place) => place.group === 'work').map((place) => <Entry key={place.path} place={place} onNavigate={onNavigate} />)}
      <Text className={classes.group}>Fleet</Text>
      {shown.filter((place) => place.group === 'fleet').map((place) => <Entry key={place.path} place={place} onNavigate={onNavigate} />)}
    </div>
  );
}

function Entry({ place, onNavigate }: { place: Place; onNavigate: () => void }) {
  const [location] = useLocation();
  const active = place.path === '/' ? location === '/' : location === place.path || location.startsWith(`${place.path}/`);
  return (
    <NavLink
      component={Link}
      href={place.path}
      active={active}
      aria-current={active ? 'page' : undefined}
      label={place.label}
      leftSection={<Icon name={place.icon} size={18} />}
      rightSection={place.path === '/dead' ? <DeadCount /> : undefined}
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
  return data?.live.dead ? <span className={classes.count}>{data.live.dead.toLocaleString('en')}</span> : null;
}
