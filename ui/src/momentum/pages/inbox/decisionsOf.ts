import type { Account, InboxItem } from '../../api/types';
import { plural } from '../../../parts/plural';

/** One card for each decision: posts that wait for the same account are one decision. */
export function decisionsOf(items: InboxItem[], accounts: Account[]): InboxItem[] {
  const waiting = Map.groupBy(
    items.filter((item) => item.kind === 'account'),
    (item) => item.account_id ?? '',
  );
  const expired = accounts.filter(({ id, state }) => state === 'expired' && !waiting.has(id));
  return [
    ...items.filter((item) => item.kind !== 'account'),
    ...[...waiting].map(([account_id, posts]): InboxItem => ({
      kind: 'account',
      account_id,
      platform: posts[0]?.platform ?? null,
      reason: `${plural(posts.length, 'scheduled post')} cannot go out: access has ended, or ends before they are due`,
    })),
    ...expired.map(({ id, platform }): InboxItem => ({
      kind: 'account',
      account_id: id,
      platform,
      reason: 'Its access has ended, so nothing can be posted for it',
    })),
  ];
}
