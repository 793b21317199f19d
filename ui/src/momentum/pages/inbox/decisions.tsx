import { Button, Text } from '@mantine/core';
import { Link } from 'wouter';
import { Icon } from '../../../parts/Icon';
import { useAction } from '../../../parts/useAction';
import { Timestamp } from '../../../time/Timestamp';
import { call } from '../../api/call';
import type { Account, InboxItem, Post } from '../../api/types';
import { useStatus } from '../../session/statusContext';
import { connect } from '../accounts/connect';

/** A failed post: change it, try it again, or leave it. */
export function FailedDecision({ post }: { post: Post }) {
  const act = useAction();
  const path = { post_id: post.id };
  const body = { version: post.version };
  return (
    <>
      <Button component={Link} href={`/posts/${post.id}/edit`} leftSection={<Icon name="edit" />}>
        Edit and schedule
      </Button>
      <Button
        variant="default"
        leftSection={<Icon name="retry" />}
        onClick={() =>
          act(() => call('POST /posts/{post_id}/publish', { path, body }), 'The post is on its way')
        }
      >
        Publish again
      </Button>
      <Button
        variant="subtle"
        color="gray"
        onClick={() => act(() => call('POST /posts/{post_id}/cancel', { path, body }), 'Given up')}
      >
        Give up
      </Button>
    </>
  );
}

export function AccountDecision({ account, platform }: { account: Account; platform: string }) {
  const act = useAction();
  return (
    <Button
      leftSection={<Icon name="retry" />}
      onClick={() => act(() => connect(account.platform, account.server), `Opening ${platform}`)}
    >
      Connect again
    </Button>
  );
}

/**
 * A pause with an end goes on by itself; a person ends the other one, after fixing its cause. All tenants share
 * a platform, so that only an operator resumes it.
 */
export function HoldDecision({ item, platform }: { item: InboxItem; platform: string }) {
  const act = useAction();
  const { status } = useStatus();
  const name = item.platform ?? '';
  return (
    <>
      {!item.account_id && !status.operator && (
        <Text size="sm" c="dimmed" component="span" my="auto">
          An operator of this service can resume it.
        </Text>
      )}
      {!item.account_id && status.operator && (
        <Button
          leftSection={<Icon name="play" />}
          onClick={() =>
            act(() => call('POST /platforms/{name}/resume', { path: { name } }), `${platform} goes on`)
          }
        >
          Resume
        </Button>
      )}
      {item.until && (
        <Text size="sm" c="dimmed" component="span" my="auto">
          Goes on by itself <Timestamp at={item.until} show="relative" />.
        </Text>
      )}
    </>
  );
}
