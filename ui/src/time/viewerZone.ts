import { useSyncExternalStore } from 'react';

const NAME = 'duetime-zone';
const listeners = new Set<() => void>();

export const BROWSER_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC';
export const ZONES: readonly string[] = ['UTC', ...Intl.supportedValuesOf('timeZone').filter((zone) => zone !== 'UTC')];

const chosen = (): string => localStorage.getItem(NAME) ?? BROWSER_ZONE;

export function setViewerZone(zone: string): void {
  localStorage.setItem(NAME, zone);
  listeners.forEach((tell) => tell());
}

/** The zone in which this viewer wants to read times: the browser's, until they choose another. */
export function useViewerZone(): string {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, chosen);
}
