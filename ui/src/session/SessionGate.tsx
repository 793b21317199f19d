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

const REFRESH = 60_000;

async function fetchMe(signal: AbortSignal): Promise<Me> {
  const me = await call('GET /me', { signal });
  setServerNow(me.now);
  return me;
}

/** Who is asking. A key that ends while the page is open is asked for on top of it, so that nothing typed is lost. */
export function SessionGate({ children }: { children: ReactNode }) {
  const client = useQueryClient();
  const [leaving, setLeaving] = useState(false);
  const { data: me, error, refetch } = useQuery({
    queryKey: ['me'],
    queryFn: ({ signal }) => fetchMe(signal),
    refetchInterval: REFRESH,
    enabled: !leaving,
  });
  const signOut = useCallback(() => {
    keyStore.forget();
    setLeaving(true);
    client.clear();
  }, [client]);
  const session = useMemo(() => (me ? { me, signOut } : null), [me, signOut]);
  const signIn = useCallback(() => {
    setLeaving(false);
    void client.invalidateQueries();
  }, [client]);

  const unknown = error !== null && asProblem(error).status === 401;
  if (leaving || (session === null && unknown)) return <LoginScreen onDone={signIn} />;
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
      <Modal opened={unknown} onClose={() => undefined} withCloseButton={false} title="Your key is no longer accepted" centered>
        <LoginForm onDone={signIn} />
      </Modal>
    </SessionContext>
  );
}
