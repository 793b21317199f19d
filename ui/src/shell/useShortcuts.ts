import { useEffect } from 'react';
import { useLocation } from 'wouter';

const SEQUENCE_TIMEOUT = 1_200;

/** What happens when a single key is pressed outside of an input. */
export type KeyActions = Readonly<Record<string, () => void>>;

interface Shortcuts {
  palette: () => void;
  help: () => void;
  /** The pages by the key to press after `g`. */
  goTo: Readonly<Record<string, string>>;
  actions: KeyActions;
}

function isTextInput(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

/** Keyboard shortcuts of every page. `?` lists them. */
export function useShortcuts({ palette, help, goTo, actions }: Shortcuts): void {
  const [, navigate] = useLocation();
  useEffect(() => {
    let prefixAt = 0;
    const onKeyDown = (event: KeyboardEvent) => {
      if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault();
        palette();
      }
      if (
        event.metaKey ||
        event.ctrlKey ||
        event.altKey ||
        isTextInput(event.target) ||
        document.querySelector('[role="dialog"]')
      )
        return;
      const path = Date.now() - prefixAt < SEQUENCE_TIMEOUT ? goTo[event.key] : undefined;
      prefixAt = event.key === 'g' ? Date.now() : 0;
      if (path) navigate(path);
      else if (event.key === '?') help();
      else if (Object.hasOwn(actions, event.key)) actions[event.key]!();
      else if (event.key === '/') {
        const search = document.querySelector<HTMLInputElement>('[data-search]');
        if (search) {
          event.preventDefault();
          search.focus();
        } else palette();
      }
    };
    document.addEventListener('keydown', onKeyDown);
    return () => document.removeEventListener('keydown', onKeyDown);
  }, [palette, help, goTo, actions, navigate]);
}
