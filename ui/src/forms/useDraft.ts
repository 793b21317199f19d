import { useCallback, useState } from 'react';

/** What is being typed, kept in this tab: a reload, a lost login or a wrong click loses nothing. */
export function useDraft<T extends object>(name: string, make: () => T) {
  const place = `duetime-draft:${name}`;
  const [start] = useState(() => read<T>(place));
  const [draft, setDraft] = useState<T>(() => (start ? { ...make(), ...start } : make()));
  const [touched, setTouched] = useState(start !== null);
  const change = useCallback(
    (next: Partial<T>) => {
      setTouched(true);
      setDraft((was) => {
        const now = { ...was, ...next };
        sessionStorage.setItem(place, JSON.stringify(now));
        return now;
      });
    },
    [place],
  );
  const discard = useCallback(
    (anew?: T) => {
      sessionStorage.removeItem(place);
      setTouched(false);
      setDraft(anew ?? make());
    },
    [place, make],
  );
  return { draft, change, discard, touched };
}

function read<T>(place: string): T | null {
  const text = sessionStorage.getItem(place);
  return text === null ? null : (JSON.parse(text) as T);
}
