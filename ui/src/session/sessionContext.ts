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
  if (session === null) throw new Error('useSession needs a SessionProvider');
  return session;
}

/** Whether the user's key has this scope. Controls that need another scope are disabled. */
export function useHasScope(scope: ScopeName): boolean {
  const { me } = useSession();
  return me.scopes.includes(scope) || me.scopes.includes('admin');
}
