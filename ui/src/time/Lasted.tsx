import { useNow } from './clock';
import { lasting } from './format';

/** How long it took, or takes already. */
export function Lasted({ from, to }: { from: string | null; to: string | null }) {
  const now = useNow();
  if (from === null) return null;
  return <span className="tabular">{lasting(Math.max(0, (to === null ? now : Date.parse(to)) - Date.parse(from)))}</span>;
}
