import type { PostState } from '../api/types';

interface Shown {
  label: string;
  /** A colour of `app.css`. */
  tone: string;
}

const STATES: Record<PostState, Shown> = {
  draft: { label: 'Draft', tone: 'pending' },
  scheduled: { label: 'Scheduled', tone: 'skipped' },
  preparing: { label: 'Uploading files', tone: 'running' },
  ready: { label: 'Ready', tone: 'skipped' },
  publishing: { label: 'Publishing', tone: 'running' },
  published: { label: 'Accepted', tone: 'succeeded' },
  failed: { label: 'Failed', tone: 'dead' },
  unknown: { label: 'In doubt', tone: 'retrying' },
  cancelled: { label: 'Cancelled', tone: 'pending' },
};

export const POST_STATES = Object.keys(STATES) as PostState[];

/** The state of a filter in the address, which may hold anything. */
export function statesOf(text: string | undefined): PostState[] | undefined {
  const found = POST_STATES.filter((state) => state === text);
  return found.length > 0 ? found : undefined;
}

export const toneOf = (state: PostState): string => STATES[state].tone;

/** The state in plain words. A platform may still remove a post, so it is "accepted", not "live". */
export function stateLabel(state: PostState, platformTitle?: string): string {
  return state === 'published' && platformTitle ? `Accepted by ${platformTitle}` : STATES[state].label;
}

/** Certainly nothing was published: the post can be edited, moved or cancelled. */
export const isEditable = (state: PostState): boolean =>
  ['draft', 'scheduled', 'preparing', 'ready', 'failed', 'cancelled'].includes(state);

export const isPlanned = (state: PostState): boolean => ['scheduled', 'preparing', 'ready'].includes(state);
