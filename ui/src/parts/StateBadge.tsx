import type { JobRow } from '../api/types';
import { ToneBadge } from './ToneBadge';

const LABELS: Record<string, string> = {
  pending: 'Pending',
  running: 'Running',
  succeeded: 'Succeeded',
  dead: 'Dead',
  cancelled: 'Cancelled',
  skipped: 'Skipped',
  retrying: 'Retrying',
  cancelling: 'Cancelling',
  active: 'Active',
  paused: 'Paused',
  ended: 'Ended',
  alive: 'Alive',
  left: 'Left',
  expired: 'Expired',
  revoked: 'Revoked',
};
const TONES: Record<string, string> = {
  cancelling: 'cancelled',
  active: 'succeeded',
  paused: 'cancelled',
  ended: 'pending',
  alive: 'succeeded',
  left: 'pending',
  expired: 'cancelled',
  revoked: 'dead',
};

/** A state as coloured text. */
export function StateBadge({ state }: { state: string }) {
  return <ToneBadge tone={TONES[state] ?? state}>{LABELS[state] ?? state}</ToneBadge>;
}

export function JobStateBadge({ job }: { job: Pick<JobRow, 'state' | 'failures' | 'cancel_requested'> }) {
  if (job.state === 'running' && job.cancel_requested) return <StateBadge state="cancelling" />;
  return <StateBadge state={job.state === 'pending' && job.failures > 0 ? 'retrying' : job.state} />;
}
