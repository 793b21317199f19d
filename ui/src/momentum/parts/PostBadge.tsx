import { ToneBadge } from '../../parts/ToneBadge';
import type { PostState } from '../api/types';
import { stateLabel, toneOf } from './states';

export function PostBadge({ state, platform }: { state: PostState; platform?: string }) {
  return <ToneBadge tone={toneOf(state)}>{stateLabel(state, platform)}</ToneBadge>;
}
