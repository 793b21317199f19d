import { useMantineColorScheme } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useLocation } from 'wouter';
import type { Command } from '../../shell/command';
import { CommandSearch } from '../../shell/CommandPalette';
import { call } from '../api/call';
import { stateLabel } from '../parts/states';
import { titleOf } from '../text/tokens';
import { PAGES } from './routes';

const DEBOUNCE = 150;
const MAX_POSTS = 8;

/** Pages, actions and posts that match the text. */
export function MomentumPalette({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState('');
  const query = text.trim();
  const [debounced] = useDebouncedValue(query, DEBOUNCE);
  const [, navigate] = useLocation();
  const fixed = useFixedCommands();
  const isTyping = query !== debounced;
  const fits = (name: string) => name.toLowerCase().includes(query.toLowerCase());
  const { data, isFetching, isPlaceholderData } = useQuery({
    queryKey: ['posts', 'palette', debounced],
    queryFn: ({ signal }) => call('GET /posts', { query: { q: debounced, limit: MAX_POSTS }, signal }),
    enabled: debounced.length > 0,
    placeholderData: keepPreviousData,
  });
  // Until those of this text are here: those found before that have it.
  const isFound = !isTyping && !isPlaceholderData;
  const posts = (query ? (data?.items ?? []) : [])
    .filter((post) => isFound || fits(post.text))
    .map((post): Command => ({
      id: post.id,
      label: titleOf(post.text) || 'Post without text',
      hint: stateLabel(post.state),
      icon: 'edit',
      run: () => navigate(`/posts/${post.id}`),
    }));
  const matching = fixed.filter(({ label }) => fits(label));
  return (
    <CommandSearch
      text={text}
      onText={setText}
      commands={[...matching, ...posts]}
      searching={query.length > 0 && (isTyping || isFetching)}
      hint="Page, post or command …"
      onClose={onClose}
    />
  );
}

function useFixedCommands(): Command[] {
  const [, navigate] = useLocation();
  const { setColorScheme } = useMantineColorScheme();
  return [
    { id: 'new', label: 'Write a post', hint: 'n', icon: 'edit', run: () => navigate('/new') },
    ...PAGES.map((page): Command => ({
      id: page.path,
      label: page.label,
      hint: `g ${page.shortcut}`,
      icon: 'arrow',
      run: () => navigate(page.path),
    })),
    {
      id: 'drafts',
      label: 'Drafts',
      hint: 'Calendar',
      icon: 'filter',
      run: () => navigate('/?view=list&state=draft'),
    },
    { id: 'light', label: 'Light theme', hint: 'Theme', icon: 'sun', run: () => setColorScheme('light') },
    { id: 'dark', label: 'Dark theme', hint: 'Theme', icon: 'moon', run: () => setColorScheme('dark') },
  ];
}
