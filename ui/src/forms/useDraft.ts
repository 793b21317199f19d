import { useCallback, useState } from 'react';

/** Form input, kept in this tab: a reload, an expired login or a wrong click loses nothing. */
export function useDraft<T extends object>(name: string, make: () => T) {
  const storageKey = `duetime-draft:${name}`;
  const [stored] = useState(() => read<T>(storageKey));
  const [draft, setDraft] = useState<T>(() => (stored ? { ...make(), ...stored } : make()));
  const [touched, setTouched] = useState(stored !== null);
  const change = useCallback(
    (next: Partial<T>) => {
      setTouched(true);
      setDraft((previous) => {
        const updated = { ...previous, ...next };
        sessionStorage.setItem(storageKey, JSON.stringify(updated));
        return updated;
      });
    },
    [storageKey],
  );
  const discard = useCallback(() => {
    sessionStorage.removeItem(storageKey);
    setTouched(false);
    setDraft(make());
  }, [storageKey, make]);
  return { draft, change, discard, touched };
}

function read<T>(storageKey: string): T | null {
  const text = sessionStorage.getItem(storageKey);
  return text === null ? null : (JSON.parse(text) as T);
}
