import type { IconName } from '../parts/Icon';

/** An entry of the command palette. */
export interface Command {
  id: string;
  label: string;
  hint: string;
  icon: IconName;
  run: () => void;
}
