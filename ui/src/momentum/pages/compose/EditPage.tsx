import { Button, Skeleton } from '@mantine/core';
import { useCallback } from 'react';
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
      {loaded && isEditable(post.state) && (
        <Editor key={post.version} post={post} accounts={connected(accounts.data)} media={media} />
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
