import { useState, type FocusEvent, type KeyboardEvent } from 'react';

const buttonsOf = (group: Element): HTMLButtonElement[] => [...group.querySelectorAll('button')];

/** A grid of buttons is one stop of the Tab key. Arrow keys move the focus to the next enabled button. */
export function useArrowKeys(columns: number, enabled: boolean[]) {
  const [focused, setFocused] = useState(-1);
  const stop = enabled[focused] ? focused : enabled.indexOf(true);
  const steps: Record<string, number> = {
    ArrowRight: 1,
    ArrowLeft: -1,
    ArrowDown: columns,
    ArrowUp: -columns,
  };
  return {
    tabIndexOf: (index: number): number => (index === stop ? 0 : -1),
    onFocus: (event: FocusEvent<HTMLElement>) =>
      setFocused(buttonsOf(event.currentTarget).indexOf(event.target as HTMLButtonElement)),
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
