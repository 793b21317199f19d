import { Center, Loader, Modal } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useMemo, useState, type ReactNode } from 'react';
import { asProblem } from '../../api/problem';
import { showError } from '../../parts/toasts';
import { LoginScreen } from '../../session/LoginScreen';
import { Unreachable } from '../../session/Unreachable';
import { setServerNow } from '../../time/clock';
import { call } from '../api/call';
import { KeyForm } from './KeyForm';
import { StatusContext } from './statusContext';

const REFRESH_INTERVAL = 15_000;

async function fetchStatus(signal: AbortSignal) {
  const status = await call('GET /status', { signal });
  setServerNow(status.now);
  return status;
}

/**
 * Shows the page when the service answers, or asks for a key. When a session ends later, a dialog asks for
 * the key on top of the page, so that no input is lost.
 */
export function SessionGate({ children }: { children: ReactNode }) {
  const client = useQueryClient();
  const [signedOut, setSignedOut] = useState(false);
  const { data, error, refetch } = useQuery({
    queryKey: ['status'],
    queryFn: ({ signal }) => fetchStatus(signal),
    refetchInterval: REFRESH_INTERVAL,
    enabled: !signedOut,
  });
  const signOut = useCallback(() => {
    void call('DELETE /session', {}).then(() => {
      setSignedOut(true);
      client.clear();
    }, showError);
  }, [client]);
  const signIn = useCallback(() => {
    setSignedOut(false);
    void client.invalidateQueries();
  }, [client]);
  const session = useMemo(() => (data ? { status: data, signOut } : null), [data, signOut]);

  const unauthorized = error !== null && asProblem(error).status === 401;
  if (signedOut || (session === null && unauthorized)) {
    return (
      <LoginScreen product="Momentum" note="Sign in with a key of your workspace.">
        <KeyForm onDone={signIn} />
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
    <StatusContext value={session}>
      {children}
      <Modal
        opened={unauthorized}
        onClose={() => undefined}
        withCloseButton={false}
        title="Your session has ended"
        centered
      >
        <KeyForm onDone={signIn} />
      </Modal>
    </StatusContext>
  );
}
