import { useEffect } from 'react';
import { useLocation } from 'wouter';
import { useLive } from '../live/liveContext';
import { PLACES } from './places';

const SEQUENCE = 1_200;

interface Actions {
  palette: () => void;
  help: () => void;
}

function typing(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

/** The keys that work on every page. `?` lists them. */
export function useShortcuts({ palette, help }: Actions): void {
  const [, navigate] = useLocation();
  const { toggle } = useLive();
  useEffect(() => {
    let went = 0;
    const press = (event: KeyboardEvent) => {
      if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault();
        palette();
      }
      if (event.metaKey || event.ctrlKey || event.altKey || typing(event.target) || document.querySelector('[role="dialog"]')) return;
      const place = Date.now() - went < SEQUENCE ? PLACES.find((one) => one.shortcut === event.key) : undefined;
      went = event.key === 'g' ? Date.now() : 0;
      if (place) navigate(place.path);
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
    document.addEventListener('keydown', press);
    return () => document.removeEventListener('keydown', press);
  }, [palette, help, toggle, navigate]);
}
