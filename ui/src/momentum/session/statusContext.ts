import { createContext, useContext } from 'react';
import type { Status } from '../api/types';

interface Session {
  status: Status;
  signOut: () => void;
}

export const StatusContext = createContext<Session | null>(null);

/** The service: its platforms, counts and version. */
export function useStatus(): Session {
  const session = useContext(StatusContext);
  if (session === null) throw new Error('useStatus needs a SessionGate');
  return session;
}
