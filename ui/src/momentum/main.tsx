import '../styles.css';
import './momentum.css';
import { LiveProvider } from '../live/LiveProvider';
import { start } from '../start';
import { SESSION, SOURCE, STALE } from './live/momentumEvents';
import { SessionGate } from './session/SessionGate';
import { MomentumShell } from './shell/MomentumShell';

start(
  <SessionGate>
    <LiveProvider source={SOURCE} stale={STALE} session={SESSION}>
      <MomentumShell />
    </LiveProvider>
  </SessionGate>,
);
