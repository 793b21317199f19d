import { Center, Loader, Modal } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useMemo, useState, type ReactNode } from 'react';
import { call } from '../api/call';
import { asProblem } from '../api/problem';
import type { Me } from '../api/types';
import { setServerNow } from '../time/clock';
import { keyStore } from './keyStore';
import { LoginForm } from './LoginForm';
import { LoginScreen } from './LoginScreen';
import { SessionContext } from './sessionContext';
import { Unreachable } from './Unreachable';

const REFRESH_INTERVAL = 60_000;

async function fetchMe(signal: AbortSignal): Promise<Me> {
  const me = await call('GET /me', { signal });
  setServerNow(me.now);
  return me;
}

/**
 * The current user. If the key becomes invalid, a dialog asks for a new one on top of the page, so that no
 * input is lost.
 */
export function SessionProvider({ children }: { children: ReactNode }) {
  const client = useQueryClient();
  const [signedOut, setSignedOut] = useState(false);
  const {
    data: me,
    error,
    refetch,
  } = useQuery({
    queryKey: ['me'],
    queryFn: ({ signal }) => fetchMe(signal),
    refetchInterval: REFRESH_INTERVAL,
    enabled: !signedOut,
  });
  const signOut = useCallback(() => {
    keyStore.forget();
    setSignedOut(true);
    client.clear();
  }, [client]);
  const session = useMemo(() => (me ? { me, signOut } : null), [me, signOut]);
  const signIn = useCallback(() => {
    setSignedOut(false);
    void client.invalidateQueries();
  }, [client]);

  const unauthorized = error !== null && asProblem(error).status === 401;
  if (signedOut || (session === null && unauthorized)) {
    return (
      <LoginScreen
        product="Duetime"
        note="Sign in with an API key. The scopes of your key decide what you can see and do."
      >
        <LoginForm onDone={signIn} />
      </LoginScreen>
    );
  }
  if (session === null) {
    if (error !== null) return <Unreachable problem={asProblem(error)} onRetry={() => void refetch()} />;
    return (
      <Center h="100vh">
        <Loader aria-label="Loading" />
      </Center>
    );
  }
  return (
    <SessionContext value={session}>
      {children}
      <Modal
        opened={unauthorized}
        onClose={() => undefined}
        withCloseButton={false}
        title="Your key is no longer accepted"
        centered
      >
        <LoginForm onDone={signIn} />
      </Modal>
    </SessionContext>
  );
}
