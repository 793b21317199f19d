import type { Account } from '../../api/types';
import { resolveWhen } from '../../when/when';
import { isEmpty, type ComposerDraft } from './composerDraft';
import type { FieldProblem } from './useCheck';
import type { Purpose } from './useSubmit';

/** What a person must still do before the post can be stored for this purpose, by field. */
export function missingFor(
  purpose: Purpose,
  draft: ComposerDraft,
  accounts: readonly Account[],
  isUploading: boolean,
): FieldProblem[] {
  const missing: FieldProblem[] = [];
  if (accounts.length === 0) missing.push({ field: 'account_id', message: 'Choose an account' });
  if (isUploading) missing.push({ field: 'media', message: 'Wait until the files are uploaded' });
  else if (isEmpty(draft)) missing.push({ field: 'text', message: 'Write a text, or add a file or a link' });
  if (purpose === 'schedule' && resolveWhen(draft.when) === null) {
    missing.push({ field: 'scheduled_at', message: 'Choose a date and a time' });
  }
  return missing;
}
