import { Anchor, Button, Group, Paper, Skeleton } from '@mantine/core';
import { Link } from 'wouter';
import { CopyId, CopyText } from '../../../parts/CopyText';
import { EmptyState } from '../../../parts/EmptyState';
import { Facts } from '../../../parts/Facts';
import { PageHeader } from '../../../parts/PageHeader';
import { ProblemNote } from '../../../parts/ProblemNote';
import { asProblem } from '../../../api/problem';
import { formatDuration } from '../../../time/format';
import { Timestamp } from '../../../time/Timestamp';
import { useAccounts, useMedia, usePlatforms, usePost } from '../../api/queries';
import type { Account, Platform, Post } from '../../api/types';
import { AccountLine } from '../../parts/AccountMark';
import { Glyph } from '../../parts/Glyph';
import { Note } from '../../parts/Note';
import { PostBadge } from '../../parts/PostBadge';
import { visibilityLabel } from '../../parts/visibility';
import { FeedCard } from '../../preview/FeedCard';
import { titleOf } from '../../text/tokens';
import { explain } from './explain';
import { PostActions } from './PostActions';
import classes from './PostPage.module.css';
import { previewOfPost } from './previewOfPost';
import { Timeline } from './Timeline';

export default function PostPage({ params: { id } }: { params: { id: string } }) {
  const { data: post, error, refetch } = usePost(id);
  const accounts = useAccounts();
  const platforms = usePlatforms();
  if (error !== null && asProblem(error).status === 404) {
    return (
      <EmptyState
        icon="search"
        title="There is no such post"
        level={1}
        action={
          <Button component={Link} href="/" mt="sm">
            Calendar
          </Button>
        }
      >
        It may have been deleted, or it belongs to another workspace.
      </EmptyState>
    );
  }
  if (post === undefined) {
    if (error !== null) return <ProblemNote error={error} onRetry={() => void refetch()} />;
    return <Skeleton height={480} aria-label="Loading" />;
  }
  const account = accounts.data?.find((one) => one.id === post.account_id);
  const platform = platforms.find(({ name }) => name === post.platform);
  return <Details post={post} account={account} platform={platform} />;
}

interface DetailsProps {
  post: Post;
  account: Account | undefined;
  platform: Platform | undefined;
}

function Details({ post, account, platform }: DetailsProps) {
  const title = platform?.title ?? post.platform;
  const media = useMedia(post.media.map((use) => use.media_id));
  const note = explain(post, title, platform?.hold ?? null);
  return (
    <>
      <PageHeader
        title={titleOf(post.text) || 'Post without text'}
        description={
          <Group gap="sm" mt={6}>
            <PostBadge state={post.state} platform={title} />
            <AccountLine account={account} size={22} />
          </Group>
        }
        actions={<PostActions post={post} />}
      />
      <div className={classes.layout}>
        <div className={classes.side}>
          {note && (
            <Note tone={note.tone} title={note.title}>
              {note.text}
              {note.inbox && (
                <div>
                  <Button component={Link} href="/inbox" size="compact-sm" variant="default" mt="xs">
                    Decide in the inbox
                  </Button>
                </div>
              )}
            </Note>
          )}
          <Paper withBorder p="md">
            <Facts facts={factsOf(post)} />
          </Paper>
          <Timeline post={post} />
        </div>
        <section aria-label="Preview">
          <FeedCard
            post={previewOfPost(post, media)}
            account={account}
            foldAfter={platform?.rules.fold_after ?? null}
          />
        </section>
      </div>
    </>
  );
}

function factsOf(post: Post): Array<[string, React.ReactNode]> {
  const facts: Array<[string, React.ReactNode] | false> = [
    [
      'Planned for',
      <Timestamp
        key="at"
        at={post.scheduled_at}
        show="both"
        otherZone={post.zone}
        placeholder="No time yet"
      />,
    ],
    post.published_at !== null && ['Published', <Timestamp key="at" at={post.published_at} show="both" />],
    post.lateness_ms !== null && ['Lateness', formatDuration(Math.max(0, post.lateness_ms))],
    post.url !== null && [
      'Address',
      <Anchor key="url" href={post.url} target="_blank" rel="noreferrer" size="sm">
        Open the post <Glyph name="open" size={13} />
      </Anchor>,
    ],
    post.platform_id !== null && [
      'Platform id',
      <CopyText key="id" text={post.platform_id} label="Copy platform id" />,
    ],
    ['Visible to', visibilityLabel(post.visibility)],
    post.labels.length > 0 && ['Labels', post.labels.join(', ')],
    post.error !== null && ['Last error', `${post.error}${post.error_code ? ` (${post.error_code})` : ''}`],
    ['Post id', <CopyId key="post" id={post.id} full />],
    post.job_id !== null && ['Job id', <CopyId key="job" id={post.job_id} full />],
    ['Created', <Timestamp key="created" at={post.created_at} />],
  ];
  return facts.filter((fact) => fact !== false);
}
