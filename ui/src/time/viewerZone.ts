import { useSyncExternalStore } from 'react';

const STORAGE_KEY = 'duetime-zone';
const listeners = new Set<() => void>();

export const BROWSER_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC';
export const ZONES: readonly string[] = [
  'UTC',
  ...Intl.supportedValuesOf('timeZone').filter((zone) => zone !== 'UTC'),
];

const chosen = (): string => localStorage.getItem(STORAGE_KEY) ?? BROWSER_ZONE;

export function setViewerZone(zone: string): void {
  localStorage.setItem(STORAGE_KEY, zone);
  listeners.forEach((notify) => notify());
}

/** The time zone in which times are shown: the browser's, unless the user chose another. */
export function useViewerZone(): string {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, chosen);
}
