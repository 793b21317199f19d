import { useSyncExternalStore } from 'react';

let offset = 0;

/** The server's clock counts: "in 3 s" must be right on a laptop whose clock is not. */
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
    listeners.forEach((tell) => tell());
  }, 1_000);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** The present, in milliseconds; whoever asks is drawn anew every second. */
export function useNow(): number {
  useSyncExternalStore(subscribe, () => second);
  return serverNow();
}
