import { Button, Select, TagsInput, Text } from '@mantine/core';
import { useHotkeys } from '@mantine/hooks';
import { useCallback, useEffect, useRef, useState } from 'react';
import { focusFirstError } from '../../../forms/focusFirstError';
import { FormProblem } from '../../../forms/FormProblem';
import { useDraft } from '../../../forms/useDraft';
import { ProblemError } from '../../../api/problem';
import { ConfirmDialog } from '../../../parts/ConfirmDialog';
import { usePlatforms } from '../../api/queries';
import type { Account, Media, Post } from '../../api/types';
import { visibilityLabel } from '../../parts/visibility';
import { WhenInput } from '../../when/WhenInput';
import { placeInText } from '../../text/mentions';
import { AccountPicker } from './AccountPicker';
import { BestTimes } from './BestTimes';
import classes from './Composer.module.css';
import { chosenAccounts, contentOf, isEmpty, timeOf, type ComposerDraft } from './composerDraft';
import { ComposerPreview } from './ComposerPreview';
import { ComposerTools } from './ComposerTools';
import { LinkField } from './LinkField';
import { MediaField } from './MediaField';
import { missingFor } from './missing';
import { strictest } from './strictest';
import { TextField } from './TextField';
import { errorsOf, useCheck } from './useCheck';
import { useFileDrop } from './useFileDrop';
import { useSubmit, type Purpose } from './useSubmit';
import { useUploads } from './useUploads';

interface ComposerProps {
  accounts: Account[];
  /** The stored post, if one is edited. */
  post?: Post;
  make: () => ComposerDraft;
}

export function Composer({ accounts, post, make }: ComposerProps) {
  const name = post ? `momentum:${post.id}:${post.version}` : 'momentum:new';
  const { draft, change, discard, touched } = useDraft(name, make, localStorage);
  const platforms = usePlatforms();
  const chosen = chosenAccounts(draft, accounts);
  const rules = strictest(chosen, platforms);
  const [confirming, setConfirming] = useState(false);
  /** What was pressed although something was missing. Each time a new object: it moves the focus again. */
  const [pressed, setPressed] = useState<{ purpose: Purpose } | null>(null);
  const area = useRef<HTMLTextAreaElement>(null);

  const onUploaded = useCallback(
    (media: Media) => change(({ files }) => ({ files: [...files, { media, alt_text: '', title: '' }] })),
    [change],
  );
  const { uploads, add, remove } = useUploads(onUploaded);
  const dropping = useFileDrop(add);

  const [first] = chosen;
  const checkable = first !== undefined && !isEmpty(draft);
  const { checked, current } = useCheck(
    checkable ? { ...contentOf(draft, rules.visibilities), account_id: first.id, ...timeOf(draft) } : null,
  );
  const { submit, error, busy } = useSubmit({ draft, accounts: chosen, platforms, post, onStored: discard });
  const refused = error instanceof ProblemError ? error.errors : [];
  const uploading = uploads.some((upload) => upload.error === null);
  const missing = pressed ? missingFor(pressed.purpose, draft, chosen, uploading) : [];
  const errorOf = errorsOf([...missing, ...refused, ...(checked?.problems ?? [])]);

  useEffect(() => {
    if (pressed) focusFirstError(area.current);
  }, [pressed]);
  const tryTo = (purpose: Purpose) => {
    if (busy !== null) return;
    if (missingFor(purpose, draft, chosen, uploading).length > 0) return setPressed({ purpose });
    setPressed(null);
    if (purpose === 'publish' && !confirming) setConfirming(true);
    else void submit(purpose);
  };
  useHotkeys([['mod+Enter', () => tryTo('schedule')]], []);

  const insert = (text: string) => {
    const { selectionStart = Infinity, selectionEnd = Infinity } = area.current ?? {};
    const [at, end] = [placeInText(draft.text, selectionStart), placeInText(draft.text, selectionEnd)];
    change({ text: draft.text.slice(0, at) + text + draft.text.slice(end) });
    area.current?.focus();
  };
  return (
    <div className={classes.layout}>
      <form className={classes.form} onSubmit={(event) => event.preventDefault()} aria-label="Post">
        {error !== null && <FormProblem error={error} title="The post was not stored" />}
        <AccountPicker
          accounts={accounts}
          chosen={draft.accountIds}
          onChange={(accountIds) => change({ accountIds })}
          single={post !== undefined}
          error={errorOf('account_id')}
        />
        <TextField
          value={draft.text}
          onChange={(text) => change({ text })}
          onFiles={add}
          counted={current ? checked?.length : undefined}
          limit={rules.maxText}
          foldAfter={rules.foldAfter}
          error={errorOf('text')}
          dropping={dropping}
          area={area}
          tools={
            <ComposerTools
              rules={rules}
              platform={first?.platform ?? 'linkedin'}
              hasFiles={draft.files.length > 0}
              hasLink={draft.article !== null}
              onFiles={add}
              onLink={() => change({ article: { url: '', title: '', description: '' } })}
              onInsert={insert}
            />
          }
        />
        <MediaField
          files={draft.files}
          uploads={uploads}
          onChange={(next) => change({ files: next })}
          onStop={remove}
          error={errorOf('media')}
        />
        {draft.article && draft.files.length === 0 && (
          <LinkField
            article={draft.article}
            onChange={(article) => change({ article })}
            errorOf={errorOf}
            imageTypes={rules.imageTypes}
          />
        )}
        <div className={classes.pair}>
          <Select
            label="Who can see it"
            data={rules.visibilities.map((value) => ({ value, label: visibilityLabel(value) }))}
            value={
              rules.visibilities.includes(draft.visibility)
                ? draft.visibility
                : (rules.visibilities[0] ?? null)
            }
            onChange={(visibility) => visibility && change({ visibility })}
            allowDeselect={false}
            error={errorOf('visibility')}
          />
          <TagsInput
            label="Labels"
            placeholder={draft.labels.length > 0 ? '' : 'For your own order; not published'}
            value={draft.labels}
            onChange={(labels) => change({ labels })}
            error={errorOf('labels')}
          />
        </div>
        <div>
          <WhenInput
            value={draft.when}
            onChange={(when) => change({ when: { ...draft.when, later: false, ...when } })}
            error={errorOf('scheduled_at') ?? errorOf('local_time')}
          />
          <BestTimes
            accountId={first?.id}
            zone={draft.when.zone}
            onPick={(date, time) => change({ when: { ...draft.when, date, time, later: false } })}
          />
        </div>
        <div className={classes.actions}>
          <Button
            variant="subtle"
            color="gray"
            onClick={() => {
              setPressed(null);
              discard();
            }}
            disabled={!touched}
          >
            {post ? 'Undo changes' : 'Clear'}
          </Button>
          <Button
            variant="default"
            onClick={() => tryTo('draft')}
            disabled={busy !== null}
            loading={busy === 'draft'}
          >
            Save draft
          </Button>
          <Button
            variant="default"
            onClick={() => tryTo('publish')}
            disabled={busy !== null}
            loading={busy === 'publish'}
          >
            Publish now
          </Button>
          <Button
            onClick={() => tryTo('schedule')}
            disabled={busy !== null}
            loading={busy === 'schedule'}
            title="Ctrl+Enter"
          >
            {chosen.length > 1 ? `Schedule ${chosen.length} posts` : 'Schedule'}
          </Button>
        </div>
        {touched && (
          <Text size="xs" c="dimmed" ta="right">
            Unsaved text stays in this browser.
          </Text>
        )}
      </form>
      <ComposerPreview draft={draft} accounts={chosen} platforms={platforms} />
      {confirming && (
        <ConfirmDialog
          title="Publish now?"
          verb="Publish now"
          danger={false}
          onClose={() => setConfirming(false)}
          onConfirm={() => void submit('publish')}
        >
          The post goes out in a few seconds, for {chosen.map(({ author }) => author.name).join(', ')}. A
          published post cannot be taken back here.
        </ConfirmDialog>
      )}
    </div>
  );
}
