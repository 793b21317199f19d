import { Group, Text, Title } from '@mantine/core';
import { Link } from 'wouter';
import { Timestamp } from '../../../time/Timestamp';
import { usePlatformTitle } from '../../api/queries';
import type { Account, InboxItem } from '../../api/types';
import { AccountLine } from '../../parts/AccountMark';
import { sentence } from '../../text/sentence';
import { titleOf } from '../../text/tokens';
import { AccountDecision, FailedDecision, HoldDecision } from './decisions';
import classes from './InboxCard.module.css';
import { UnknownDecision } from './UnknownDecision';

interface InboxCardProps {
  item: InboxItem;
  account: Account | undefined;
}

/** One thing to decide: what happened, in plain words, and what can be done. */
export function InboxCard({ item, account }: InboxCardProps) {
  const platform = usePlatformTitle()(item.platform ?? item.post?.platform);
  const { kind, post, reason, since } = item;
  return (
    <li className={classes.root} data-kind={kind}>
      <div className={classes.body}>
        <Group justify="space-between" gap="xs">
          <Title order={2} size="h5">
            {headline(kind, platform, account)}
          </Title>
          {since && (
            <Text size="xs" c="dimmed" component="span">
              <Timestamp at={since} show="relative" />
            </Text>
          )}
        </Group>
        <Text size="sm" mt={4}>
          {sentence(reason)}
        </Text>
        {kind === 'unknown' && (
          <Text size="sm" c="dimmed" mt={4}>
            Momentum does not try again by itself, because that could post twice. Look at your {platform}{' '}
            profile, then say what you see.
          </Text>
        )}
        {post && (
          <Link href={`/posts/${post.id}`} className={classes.quote ?? ''}>
            {titleOf(post.text) || 'Post without text'}
          </Link>
        )}
        {post && (
          <Group mt="sm" gap="lg">
            <Text size="sm" component="span">
              <AccountLine account={account} size={22} />
            </Text>
            <Text size="sm" c="dimmed" component="span">
              Planned for <Timestamp at={post.scheduled_at} />
            </Text>
          </Group>
        )}
      </div>
      <div className={classes.actions}>
        {kind === 'unknown' && post && <UnknownDecision post={post} platform={platform} account={account} />}
        {kind === 'failed' && post && <FailedDecision post={post} />}
        {kind === 'account' && account && <AccountDecision account={account} platform={platform} />}
        {kind === 'hold' && <HoldDecision item={item} platform={platform} />}
      </div>
    </li>
  );
}

function headline(kind: InboxItem['kind'], platform: string, account: Account | undefined): string {
  switch (kind) {
    case 'unknown':
      return `Did ${platform} publish this post?`;
    case 'failed':
      return 'This post was not published';
    case 'account':
      return account ? `Connect ${account.author.name} again` : 'Connect the account again';
    case 'hold':
      return account ? `${account.author.name} is paused` : `${platform} is paused`;
  }
}
