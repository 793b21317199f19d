import { useSyncExternalStore } from 'react';

let offset = 0;

/** Follows the server's clock, so that "in 3 s" is right even if the clock of the browser is wrong. */
export function setServerNow(iso: string): void {
  offset = Date.parse(iso) - Date.now();
}

export const serverNow = (): number => Date.now() + offset;

const listeners = new Set<() => void>();
let second = 0;
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    second = Math.floor(serverNow() / 1_000);
    listeners.forEach((notify) => notify());
  }, 1_000);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** The current time in milliseconds. The component renders again every second. */
export function useNow(): number {
  useSyncExternalStore(subscribe, () => second);
  return serverNow();
}
