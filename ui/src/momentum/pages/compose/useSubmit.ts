import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useState } from 'react';
import { useLocation } from 'wouter';
import { plural } from '../../../parts/plural';
import { showError, showSuccess } from '../../../parts/toasts';
import { useIdempotencyKeys } from '../../../api/useIdempotencyKeys';
import { call } from '../../api/call';
import type { Account, Platform, Post } from '../../api/types';
import { contentOf, timeOf, type ComposerDraft } from './composerDraft';

export type Purpose = 'schedule' | 'draft' | 'publish';

const DONE: Record<Purpose, string> = {
  schedule: 'scheduled',
  draft: 'saved as a draft',
  publish: 'on its way',
};

interface Submission {
  draft: ComposerDraft;
  accounts: Account[];
  platforms: Platform[];
  /** The stored post, if one is edited. */
  post: Post | undefined;
  onStored: () => void;
}

/** Stores the post, for each account one. A repeated click or a lost answer makes no second post. */
export function useSubmit({ draft, accounts, platforms, post, onStored }: Submission) {
  const client = useQueryClient();
  const [, navigate] = useLocation();
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState<Purpose | null>(null);
  const keyFor = useIdempotencyKeys();

  const submit = useCallback(
    async (purpose: Purpose) => {
      setBusy(purpose);
      setError(null);
      try {
        const stored: Post[] = [];
        for (const account of accounts) stored.push(await store(account, purpose));
        onStored();
        showSuccess(`${stored.length > 1 ? plural(stored.length, 'post') : 'Post'} ${DONE[purpose]}`);
        await client.invalidateQueries();
        const [first] = stored;
        navigate(stored.length === 1 && first ? `/posts/${first.id}` : '/');
      } catch (caught) {
        setError(caught);
        showError(caught);
      } finally {
        setBusy(null);
      }

      async function store(account: Account, why: Purpose): Promise<Post> {
        const rules = platforms.find(({ name }) => name === account.platform)?.rules;
        const content = contentOf(draft, rules?.visibilities ?? [draft.visibility]);
        const time = why === 'schedule' ? timeOf(draft) : null;
        const body = {
          ...content,
          account_id: account.id,
          ...(time ?? { scheduled_at: null, zone: draft.when.zone }),
        };
        const saved = post
          ? await call('PATCH /posts/{post_id}', {
              path: { post_id: post.id },
              body: { ...body, version: post.version },
            })
          : await call('POST /posts', { body, idempotencyKey: keyFor(body) });
        if (why !== 'publish') return saved;
        const { id, version } = saved;
        return call('POST /posts/{post_id}/publish', { path: { post_id: id }, body: { version } });
      }
    },
    [accounts, draft, platforms, post, client, navigate, onStored, keyFor],
  );
  return { submit, error, busy };
}
