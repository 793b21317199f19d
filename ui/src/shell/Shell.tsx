import { useMemo } from 'react';
import { useLocation } from 'wouter';
import { LiveIndicator } from '../live/LiveIndicator';
import { useLive } from '../live/liveContext';
import { AccountMenu } from './AccountMenu';
import { Frame } from './Frame';
import { Navigation } from './Navigation';
import { Palette } from './Palette';
import { PAGES, ROUTES } from './routes';
import { KEYS } from './shortcutKeys';
import { ThemeToggle } from './ThemeToggle';
import { ZoneMenu } from './ZoneMenu';

const GO_TO = Object.fromEntries(PAGES.map((page) => [page.shortcut, page.path]));

export function Shell() {
  const [, navigate] = useLocation();
  const { toggle } = useLive();
  const actions = useMemo(
    () => ({ P: toggle, c: () => navigate('/schedules/new'), x: () => navigate('/jobs/new') }),
    [toggle, navigate],
  );
  return (
    <Frame
      product="Duetime"
      home="Overview"
      routes={ROUTES}
      Navigation={Navigation}
      Tools={Tools}
      Palette={Palette}
      keys={KEYS}
      goTo={GO_TO}
      actions={actions}
    />
  );
}

function Tools({ onHelp }: { onHelp: () => void }) {
  return (
    <>
      <LiveIndicator />
      <ZoneMenu note="Times are shown in this time zone. Each schedule fires in its own." />
      <ThemeToggle />
      <AccountMenu onHelp={onHelp} />
    </>
  );
}
