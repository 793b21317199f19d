import './styles.css';
import { SESSION, SOURCE, STALE } from './live/duetimeEvents';
import { LiveProvider } from './live/LiveProvider';
import { SessionProvider } from './session/SessionProvider';
import { Shell } from './shell/Shell';
import { start } from './start';

start(
  <SessionProvider>
    <LiveProvider source={SOURCE} stale={STALE} session={SESSION}>
      <Shell />
    </LiveProvider>
  </SessionProvider>,
);
