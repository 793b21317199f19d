import { useMemo, type ReactNode } from 'react';
import { call } from '../api/call';
import type { Me } from '../api/types';
import { setServerNow } from '../time/clock';
import { keyStore } from './keyStore';
import { LoginForm } from './LoginForm';
import { SessionContext } from './sessionContext';
import { SessionFrame } from './SessionFrame';

const QUERY = ['me'];
const REFRESH_INTERVAL = 60_000;

async function fetchMe(signal: AbortSignal): Promise<Me> {
  const me = await call('GET /me', { signal });
  setServerNow(me.now);
  return me;
}

const forget = async (): Promise<void> => keyStore.forget();

/** The current user, known by an API key. */
export function SessionProvider({ children }: { children: ReactNode }) {
  return (
    <SessionFrame
      product="Duetime"
      note="Sign in with an API key. The scopes of your key decide what you can see and do."
      ended="Your key is no longer accepted"
      queryKey={QUERY}
      load={fetchMe}
      interval={REFRESH_INTERVAL}
      forget={forget}
      Form={LoginForm}
    >
      {(me, signOut) => (
        <Known me={me} signOut={signOut}>
          {children}
        </Known>
      )}
    </SessionFrame>
  );
}

function Known({ me, signOut, children }: { me: Me; signOut: () => void; children: ReactNode }) {
  const session = useMemo(() => ({ me, signOut }), [me, signOut]);
  return <SessionContext value={session}>{children}</SessionContext>;
}
