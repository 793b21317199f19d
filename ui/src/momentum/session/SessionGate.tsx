import { useMemo, type ReactNode } from 'react';
import { SessionFrame } from '../../session/SessionFrame';
import { setServerNow } from '../../time/clock';
import { call } from '../api/call';
import type { Status } from '../api/types';
import { KeyForm } from './KeyForm';
import { StatusContext } from './statusContext';

const QUERY = ['status'];
const REFRESH_INTERVAL = 15_000;

async function fetchStatus(signal: AbortSignal): Promise<Status> {
  const status = await call('GET /status', { signal });
  setServerNow(status.now);
  return status;
}

const forget = (): Promise<unknown> => call('DELETE /session', {});

/** Shows the page when the service answers, or asks for a key. */
export function SessionGate({ children }: { children: ReactNode }) {
  return (
    <SessionFrame
      product="Momentum"
      note="Sign in with a key of your workspace."
      ended="Your session has ended"
      queryKey={QUERY}
      load={fetchStatus}
      interval={REFRESH_INTERVAL}
      forget={forget}
      Form={KeyForm}
    >
      {(status, signOut) => (
        <Known status={status} signOut={signOut}>
          {children}
        </Known>
      )}
    </SessionFrame>
  );
}

function Known({ status, signOut, children }: { status: Status; signOut: () => void; children: ReactNode }) {
  const session = useMemo(() => ({ status, signOut }), [status, signOut]);
  return <StatusContext value={session}>{children}</StatusContext>;
}
