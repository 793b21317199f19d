import { createContext, useContext } from 'react';

export type LiveStatus = 'connecting' | 'live' | 'offline' | 'paused';

export interface Live {
  status: LiveStatus;
  toggle: () => void;
}

export const LiveContext = createContext<Live>({ status: 'connecting', toggle: () => undefined });

export const useLive = (): Live => useContext(LiveContext);

/** The refresh interval for data that no event covers; false while live updates are paused. */
export function useRefresh(milliseconds: number): number | false {
  return useLive().status === 'paused' ? false : milliseconds;
}
