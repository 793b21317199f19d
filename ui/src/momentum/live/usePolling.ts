import { useLive } from '../../live/liveContext';

const LIVE_INTERVAL = 30_000; // events report changes; this only repairs what was missed
const POLL_INTERVAL = 3_000;

/** How often to ask again: rarely while events arrive, often without them, never while paused. */
export function usePolling(): number | false {
  const { status } = useLive();
  if (status === 'paused') return false;
  return status === 'live' ? LIVE_INTERVAL : POLL_INTERVAL;
}
