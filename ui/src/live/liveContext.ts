import { createContext, useContext } from 'react';

export type LiveStatus = 'connecting' | 'live' | 'offline' | 'paused';

export interface Live {
  status: LiveStatus;
  toggle: () => void;
}

export const LiveContext = createContext<Live>({ status: 'connecting', toggle: () => undefined });

export const useLive = (): Live => useContext(LiveContext);

/** How often to fetch anew what no event tells of; never while the user has stopped the page. */
export function useRefresh(milliseconds: number): number | false {
  return useLive().status === 'paused' ? false : milliseconds;
}
