import { Center, Loader, Modal } from '@mantine/core';
import { useQuery, useQueryClient, type QueryKey } from '@tanstack/react-query';
import { useCallback, useState, type ComponentType, type ReactNode } from 'react';
import { asProblem } from '../api/problem';
import { showError } from '../parts/toasts';
import { LoginScreen } from './LoginScreen';
import { Unreachable } from './Unreachable';

interface SessionFrameProps<Session> {
  product: string;
  /** Above the form. */
  note: string;
  /** The title of the dialog when the session has ended. */
  ended: string;
  queryKey: QueryKey;
  /** Answers 401 to a user who is not signed in. */
  load: (signal: AbortSignal) => Promise<Session>;
  /** Milliseconds after which it is loaded again. */
  interval: number;
  forget: () => Promise<unknown>;
  Form: ComponentType<{ onDone: () => void }>;
  children: (session: Session, signOut: () => void) => ReactNode;
}

/**
 * Shows the page to a user who is signed in, and otherwise the form. When the session ends later, a dialog asks
 * for a key on top of the page, so that no input is lost.
 */
export function SessionFrame<Session>(props: SessionFrameProps<Session>) {
  const { product, note, ended, queryKey, load, interval, forget, Form, children } = props;
  const client = useQueryClient();
  const [signedOut, setSignedOut] = useState(false);
  const { data, error, refetch } = useQuery({
    queryKey,
    queryFn: ({ signal }) => load(signal),
    refetchInterval: interval,
    enabled: !signedOut,
  });
  const signOut = useCallback(() => {
    void forget().then(() => {
      setSignedOut(true);
      client.clear();
    }, showError);
  }, [client, forget]);
  const signIn = useCallback(() => {
    setSignedOut(false);
    void client.invalidateQueries();
  }, [client]);

  const unauthorized = error !== null && asProblem(error).status === 401;
  if (signedOut || (data === undefined && unauthorized)) {
    return (
      <LoginScreen product={product} note={note}>
        <Form onDone={signIn} />
      </LoginScreen>
    );
  }
  if (data === undefined) {
    if (error !== null) return <Unreachable problem={asProblem(error)} onRetry={() => void refetch()} />;
    return (
      <Center h="100vh">
        <Loader aria-label="Loading" />
      </Center>
    );
  }
  return (
    <>
      {children(data, signOut)}
      <Modal opened={unauthorized} onClose={() => undefined} withCloseButton={false} title={ended} centered>
        <Form onDone={signIn} />
      </Modal>
    </>
  );
}
