import { useEffect } from 'react';
import { useLocation } from 'wouter';
import { useLive } from '../live/liveContext';
import { PAGES } from './routes';

const SEQUENCE_TIMEOUT = 1_200;

interface Actions {
  palette: () => void;
  help: () => void;
}

function isTextInput(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

/** Keyboard shortcuts of every page. `?` lists them. */
export function useShortcuts({ palette, help }: Actions): void {
  const [, navigate] = useLocation();
  const { toggle } = useLive();
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
      const page =
        Date.now() - prefixAt < SEQUENCE_TIMEOUT
          ? PAGES.find((entry) => entry.shortcut === event.key)
          : undefined;
      prefixAt = event.key === 'g' ? Date.now() : 0;
      if (page) navigate(page.path);
      else if (event.key === '?') help();
      else if (event.key === 'P') toggle();
      else if (event.key === 'c') navigate('/schedules/new');
      else if (event.key === 'x') navigate('/jobs/new');
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
  }, [palette, help, toggle, navigate]);
}
