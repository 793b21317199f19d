import { PAGES } from './routes';
import type { ShortcutKeys } from './ShortcutHelp';

export const KEYS: ShortcutKeys = [
  [['Ctrl', 'K'], 'Search and commands'],
  [['/'], 'Search on this page'],
  [['c'], 'Create a schedule'],
  [['x'], 'Submit a job'],
  [['Shift', 'P'], 'Pause or resume live updates'],
  ...PAGES.map((page): [string[], string] => [['g', page.shortcut], `Go to ${page.label}`]),
  [['?'], 'Show this list'],
];
