import { Anchor, Button, Group, Menu, Modal, Stack, Text, TextInput } from '@mantine/core';
import { useState, type SubmitEvent } from 'react';
import { ConfirmDialog } from '../../../parts/ConfirmDialog';
import { Icon } from '../../../parts/Icon';
import { useAction } from '../../../parts/useAction';
import { call } from '../../api/call';
import type { Account, Post } from '../../api/types';

interface UnknownDecisionProps {
  post: Post;
  platform: string;
  account: Account | undefined;
}

/** A person says whether the post is there. */
export function UnknownDecision({ post, platform, account }: UnknownDecisionProps) {
  const act = useAction();
  const [dialog, setDialog] = useState<'there' | 'again' | null>(null);
  const path = { post_id: post.id };
  const notThere = (then: 'publish' | 'draft' | 'fail', message: string) =>
    act(
      // oxlint-disable-next-line unicorn/no-thenable -- the name of a field of the API
      () => call('POST /posts/{post_id}/resolve', { path, body: { decision: 'not_published', then } }),
      message,
    );
  const canLook = account?.author.kind === 'organization' || account?.probe === true;
  return (
    <>
      <Button leftSection={<Icon name="check" />} onClick={() => setDialog('there')}>
        It is there
      </Button>
      <Menu shadow="md" position="bottom-start">
        <Menu.Target>
          <Button variant="default" rightSection={<Icon name="down" size={14} />}>
            It is not there
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item leftSection={<Icon name="retry" />} onClick={() => setDialog('again')}>
            Publish again
          </Menu.Item>
          <Menu.Item leftSection={<Icon name="edit" />} onClick={() => notThere('draft', 'Back to draft')}>
            Back to draft
          </Menu.Item>
          <Menu.Item leftSection={<Icon name="cross" />} onClick={() => notThere('fail', 'Given up')}>
            Give up
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <Button
        variant="subtle"
        leftSection={<Icon name="search" />}
        disabled={!canLook}
        title={canLook ? undefined : `${platform} does not let Momentum read the posts of this account`}
        onClick={() =>
          act(
            () => call('POST /posts/{post_id}/check', { path }),
            `Momentum looks for the post at ${platform}`,
          )
        }
      >
        Look it up
      </Button>
      {dialog === 'there' && (
        <ThereDialog
          platform={platform}
          profile={account?.author.handle ?? null}
          onClose={() => setDialog(null)}
          onConfirm={(url) =>
            act(
              () =>
                call('POST /posts/{post_id}/resolve', {
                  path,
                  body: { decision: 'published', ...(url && { url }) },
                }),
              'Marked as published',
            )
          }
        />
      )}
      {dialog === 'again' && (
        <ConfirmDialog
          title="Publish again?"
          verb="Publish again"
          onClose={() => setDialog(null)}
          onConfirm={() => notThere('publish', 'The post is on its way again')}
        >
          Only if you have looked and the post is not there. If it is, your readers see it twice.
        </ConfirmDialog>
      )}
    </>
  );
}

interface ThereDialogProps {
  platform: string;
  profile: string | null;
  onClose: () => void;
  onConfirm: (url: string) => void;
}

function ThereDialog({ platform, onClose, onConfirm }: ThereDialogProps) {
  const [url, setUrl] = useState('');
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    onClose();
    onConfirm(url.trim());
  };
  return (
    <Modal opened onClose={onClose} title="It is there" closeButtonProps={{ 'aria-label': 'Close' }}>
      <form onSubmit={submit}>
        <Stack>
          <Text size="sm">The post is recorded as accepted by {platform}. Nothing is sent.</Text>
          <TextInput
            type="url"
            label="Address of the post"
            description="Optional: copy it at the platform, so that the post links to it."
            placeholder="https://"
            value={url}
            onChange={(event) => setUrl(event.currentTarget.value)}
            data-autofocus
          />
          {url && URL.canParse(url) && (
            <Anchor href={url} target="_blank" rel="noreferrer" size="sm">
              Open it to make sure
            </Anchor>
          )}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit">Mark as published</Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
