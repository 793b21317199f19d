import { useCallback, useState } from 'react';

/**
 * Form input, kept in this tab, or in another storage: a reload, an expired login or a wrong click loses
 * nothing.
 */
export function useDraft<T extends object>(name: string, make: () => T, storage: Storage = sessionStorage) {
  const storageKey = `duetime-draft:${name}`;
  const [stored] = useState(() => read<T>(storage, storageKey));
  const [draft, setDraft] = useState<T>(() => (stored ? { ...make(), ...stored } : make()));
  const [touched, setTouched] = useState(stored !== null);
  const change = useCallback(
    (next: Partial<T> | ((previous: T) => Partial<T>)) => {
      setTouched(true);
      setDraft((previous) => {
        const updated = { ...previous, ...(typeof next === 'function' ? next(previous) : next) };
        storage.setItem(storageKey, JSON.stringify(updated));
        return updated;
      });
    },
    [storage, storageKey],
  );
  const discard = useCallback(() => {
    storage.removeItem(storageKey);
    setTouched(false);
    setDraft(make());
  }, [storage, storageKey, make]);
  return { draft, change, discard, touched };
}

function read<T>(storage: Storage, storageKey: string): T | null {
  const text = storage.getItem(storageKey);
  return text === null ? null : (JSON.parse(text) as T);
}
