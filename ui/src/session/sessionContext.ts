import { createContext, useContext } from 'react';
import type { Me } from '../api/types';

export type ScopeName = 'read' | 'submit' | 'manage' | 'admin';

export interface Session {
  me: Me;
  signOut: () => void;
}

export const SessionContext = createContext<Session | null>(null);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === null) throw new Error('outside of a session');
  return session;
}

/** Whether the key may do this: what it may not is shown, but cannot be pressed. */
export function useMay(scope: ScopeName): boolean {
  const { me } = useSession();
  return me.scopes.includes(scope) || me.scopes.includes('admin');
}
