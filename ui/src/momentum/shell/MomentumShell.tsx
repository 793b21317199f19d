import { useMemo } from 'react';
import { useLocation } from 'wouter';
import { LiveIndicator } from '../../live/LiveIndicator';
import { useLive } from '../../live/liveContext';
import { Frame } from '../../shell/Frame';
import type { ShortcutKeys } from '../../shell/ShortcutHelp';
import { ZoneMenu } from '../../shell/ZoneMenu';
import { Menus } from './Menus';
import { MomentumNavigation } from './MomentumNavigation';
import { MomentumPalette } from './MomentumPalette';
import { PAGES, ROUTES } from './routes';

const GO_TO = Object.fromEntries(PAGES.map((page) => [page.shortcut, page.path]));
const KEYS: ShortcutKeys = [
  [['n'], 'Write a post'],
  [['Ctrl', 'Enter'], 'Schedule the post that you write'],
  [['m'], 'Move the selected post of the calendar'],
  [['Ctrl', 'K'], 'Search and commands'],
  [['/'], 'Search on this page'],
  [['Shift', 'P'], 'Pause or resume live updates'],
  ...PAGES.map((page): [string[], string] => [['g', page.shortcut], `Go to ${page.label}`]),
  [['?'], 'Show this list'],
];

export function MomentumShell() {
  const [, navigate] = useLocation();
  const { toggle } = useLive();
  const actions = useMemo(() => ({ P: toggle, n: () => navigate('/new') }), [toggle, navigate]);
  return (
    <Frame
      product="Momentum"
      home="Calendar"
      routes={ROUTES}
      Navigation={MomentumNavigation}
      Tools={Tools}
      Palette={MomentumPalette}
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
      <ZoneMenu note="Times are shown in this time zone. Each post keeps the zone it was planned in." />
      <Menus onHelp={onHelp} />
    </>
  );
}
