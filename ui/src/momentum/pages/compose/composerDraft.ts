import type { Account, Article, Media, NewPost, Post } from '../../api/types';
import { mediaUrl } from '../../api/call';
import type { PreviewPost } from '../../preview/previewPost';
import { resolveWhen, whenFields, whenOf, type When } from '../../when/when';

export interface DraftFile {
  media: Media;
  alt_text: string;
  title: string;
}

/** Everything that a person enters about a post. It is kept in the browser until the post is stored. */
export interface ComposerDraft {
  accountIds: string[];
  text: string;
  files: DraftFile[];
  article: Article | null;
  visibility: string;
  labels: string[];
  when: When;
}

export const emptyDraft = (zone: string, start: Partial<When> = {}): ComposerDraft => ({
  accountIds: [],
  text: '',
  files: [],
  article: null,
  visibility: 'PUBLIC',
  labels: [],
  when: { date: '', time: '', zone, later: false, ...start },
});

export function draftOf(post: Post, media: Map<string, Media>): ComposerDraft {
  const { account_id, text, article, visibility, labels, scheduled_at, zone } = post;
  return {
    accountIds: [account_id],
    text,
    files: post.media.flatMap(({ media_id, alt_text = '', title = '' }) => {
      const found = media.get(media_id);
      return found ? [{ media: found, alt_text, title }] : [];
    }),
    article,
    visibility,
    labels,
    when: scheduled_at ? whenOf(Date.parse(scheduled_at), zone) : emptyDraft(zone).when,
  };
}

/** The fields of a request, without the account. A platform has its own names of visibilities. */
export function contentOf(draft: ComposerDraft, visibilities: string[]): Omit<NewPost, 'account_id'> {
  const { text, files, article, visibility, labels } = draft;
  return {
    text,
    media: files.map(({ media, alt_text, title }) => ({ media_id: media.id, alt_text, title })),
    article: files.length === 0 && article?.url ? article : null,
    visibility: visibilities.includes(visibility) ? visibility : (visibilities[0] ?? visibility),
    labels,
  };
}

export function timeOf(draft: ComposerDraft) {
  const resolved = resolveWhen(draft.when);
  return resolved && whenFields(resolved.at, draft.when.zone);
}

export const previewOf = ({ text, files, article, visibility }: ComposerDraft): PreviewPost => ({
  text,
  article: article?.url ? article : null,
  visibility,
  files: files.map(({ media, alt_text, title }) => ({
    key: media.id,
    kind: media.kind,
    name: media.name,
    url: mediaUrl(media.id),
    alt: alt_text,
    title,
    pages: media.pages,
  })),
});

export const chosenAccounts = (draft: ComposerDraft, accounts: Account[]): Account[] =>
  accounts.filter((account) => draft.accountIds.includes(account.id));

export const isEmpty = ({ text, files, article }: ComposerDraft): boolean =>
  !text.trim() && files.length === 0 && !article?.url;
