import { useNow } from './clock';
import { formatDuration } from './format';

/** The time from start to end, or to now if it has not ended. */
export function Elapsed({ from, to }: { from: string | null; to: string | null }) {
  const now = useNow();
  if (from === null) return null;
  return (
    <span className="tabular">
      {formatDuration(Math.max(0, (to === null ? now : Date.parse(to)) - Date.parse(from)))}
    </span>
  );
}
