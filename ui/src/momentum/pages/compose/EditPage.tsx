import { Button, Skeleton } from '@mantine/core';
import { useCallback, useState } from 'react';
import { Link } from 'wouter';
import { PageHeader } from '../../../parts/PageHeader';
import { ProblemNote } from '../../../parts/ProblemNote';
import { connected, useAccounts, useMedia, usePost } from '../../api/queries';
import type { Account, Post } from '../../api/types';
import { Note } from '../../parts/Note';
import { isEditable, stateLabel } from '../../parts/states';
import { Composer } from './Composer';
import { draftOf } from './composerDraft';

export default function EditPage({ params: { id } }: { params: { id: string } }) {
  const accounts = useAccounts();
  const { data: post, error, refetch } = usePost(id);
  const media = useMedia(post?.media.map((use) => use.media_id) ?? []);
  const problem = error ?? accounts.error;
  const loaded = post !== undefined && accounts.data !== undefined && media.size === post.media.length;
  // What is typed belongs to the version that was opened: a newer one that arrives must not replace it.
  const [opened, setOpened] = useState<Post | null>(null);
  if (loaded && opened?.id !== id) setOpened(post);
  return (
    <>
      <PageHeader title="Edit post" />
      {problem !== null && <ProblemNote error={problem} onRetry={() => void refetch()} />}
      {!loaded && problem === null && <Skeleton height={420} />}
      {loaded && !isEditable(post.state) && (
        <Note title={`This post is ${stateLabel(post.state).toLowerCase()}`}>
          It can no longer be changed here.{' '}
          <Button component={Link} href={`/posts/${id}`} size="compact-sm" variant="default">
            Open the post
          </Button>
        </Note>
      )}
      {loaded && opened !== null && isEditable(post.state) && (
        <>
          {post.version > opened.version && (
            <Note title="The post was changed by another user">
              Yours is based on the earlier version and cannot be stored.{' '}
              <Button size="compact-sm" variant="default" onClick={() => setOpened(post)}>
                Show the new version
              </Button>
            </Note>
          )}
          <Editor key={opened.version} post={opened} accounts={connected(accounts.data)} media={media} />
        </>
      )}
    </>
  );
}

interface EditorProps {
  post: Post;
  accounts: Account[];
  media: ReturnType<typeof useMedia>;
}

function Editor({ post, accounts, media }: EditorProps) {
  const make = useCallback(() => draftOf(post, media), [post, media]);
  return <Composer accounts={accounts} post={post} make={make} />;
}
