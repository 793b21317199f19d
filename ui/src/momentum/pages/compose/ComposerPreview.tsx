import { SegmentedControl, Stack, Title } from '@mantine/core';
import { useDeferredValue, useState } from 'react';
import type { Account, Platform } from '../../api/types';
import { FeedCard } from '../../preview/FeedCard';
import classes from './Composer.module.css';
import { previewOf, type ComposerDraft } from './composerDraft';

interface ComposerPreviewProps {
  draft: ComposerDraft;
  accounts: Account[];
  platforms: Platform[];
}

export function ComposerPreview({ draft, accounts, platforms }: ComposerPreviewProps) {
  const [selected, setSelected] = useState('');
  const shown = useDeferredValue(draft); // typing comes first
  const account = accounts.find(({ id }) => id === selected) ?? accounts[0];
  const platform = platforms.find(({ name }) => name === account?.platform) ?? platforms[0];
  return (
    <Stack gap="sm" className={classes.preview} component="section" aria-label="Preview">
      <Title order={2} size="h5">
        Preview
      </Title>
      {accounts.length > 1 && (
        <SegmentedControl
          size="xs"
          aria-label="Preview for"
          data={accounts.map(({ id, author }) => ({ value: id, label: author.name }))}
          value={account?.id ?? ''}
          onChange={setSelected}
        />
      )}
      <FeedCard post={previewOf(shown)} account={account} foldAfter={platform?.rules.fold_after ?? null} />
    </Stack>
  );
}
