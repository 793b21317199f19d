import { useState, type FocusEvent, type KeyboardEvent } from 'react';

const buttonsOf = (group: Element): HTMLButtonElement[] => [...group.querySelectorAll('button')];

/** Buttons in a grid are one stop of the Tab key; arrow keys lead from each to the next that can be pressed. */
export function useArrowKeys(columns: number, usable: boolean[]) {
  const [last, setLast] = useState(-1);
  const stop = usable[last] ? last : usable.indexOf(true);
  const steps: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns };
  return {
    tabIndexOf: (place: number): number => (place === stop ? 0 : -1),
    onFocus: (event: FocusEvent<HTMLElement>) => setLast(buttonsOf(event.currentTarget).indexOf(event.target as HTMLButtonElement)),
    onKeyDown: (event: KeyboardEvent<HTMLElement>) => {
      const step = steps[event.key];
      if (step === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      const buttons = buttonsOf(event.currentTarget);
      let next = buttons.indexOf(event.target as HTMLButtonElement) + step;
      while (buttons[next]?.disabled) next += step;
      buttons[next]?.focus();
    },
  };
}
