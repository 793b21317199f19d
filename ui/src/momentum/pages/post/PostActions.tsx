import { ActionIcon, Button, Menu } from '@mantine/core';
import { useState } from 'react';
import { useLocation, Link } from 'wouter';
import { ConfirmDialog } from '../../../parts/ConfirmDialog';
import { Icon } from '../../../parts/Icon';
import { useAction } from '../../../parts/useAction';
import { call } from '../../api/call';
import type { Post } from '../../api/types';
import { Glyph } from '../../parts/Glyph';
import { isEditable, isPlanned } from '../../parts/states';
import { titleOf } from '../../text/tokens';
import { MoveDialog } from '../calendar/MoveDialog';

type Dialog = 'move' | 'publish' | 'cancel' | 'delete';

export function PostActions({ post }: { post: Post }) {
  const [dialog, setDialog] = useState<Dialog | null>(null);
  const [, navigate] = useLocation();
  const act = useAction();
  const path = { post_id: post.id };
  const body = { version: post.version };
  const editable = isEditable(post.state);
  const planned = isPlanned(post.state);
  const deletable = ['draft', 'cancelled', 'failed'].includes(post.state);
  const close = () => setDialog(null);
  const duplicate = () =>
    act(async () => {
      const copy = await call('POST /posts/{post_id}/duplicate', { path });
      navigate(`/posts/${copy.id}/edit`);
    }, 'Copied as a draft');
  return (
    <>
      {editable && (
        <>
          <Button
            component={Link}
            href={`/posts/${post.id}/edit`}
            variant="default"
            leftSection={<Icon name="edit" />}
          >
            Edit
          </Button>
          <Button variant="default" leftSection={<Glyph name="move" />} onClick={() => setDialog('move')}>
            {planned ? 'Move' : 'Schedule'}
          </Button>
          <Button leftSection={<Glyph name="send" />} onClick={() => setDialog('publish')}>
            Publish now
          </Button>
        </>
      )}
      <Menu position="bottom-end" shadow="md">
        <Menu.Target>
          <ActionIcon variant="default" size={36} aria-label="More actions">
            <Icon name="more" />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item leftSection={<Icon name="copy" />} onClick={duplicate}>
            Duplicate
          </Menu.Item>
          {planned && (
            <Menu.Item
              leftSection={<Icon name="pause" />}
              onClick={() =>
                act(() => call('POST /posts/{post_id}/unschedule', { path, body }), 'Back to draft')
              }
            >
              Back to draft
            </Menu.Item>
          )}
          {planned && (
            <Menu.Item leftSection={<Icon name="cross" />} onClick={() => setDialog('cancel')}>
              Cancel the post
            </Menu.Item>
          )}
          {deletable && (
            <Menu.Item color="red" leftSection={<Icon name="trash" />} onClick={() => setDialog('delete')}>
              Delete
            </Menu.Item>
          )}
        </Menu.Dropdown>
      </Menu>
      {dialog === 'move' && <MoveDialog post={{ ...post, title: titleOf(post.text) }} onClose={close} />}
      {dialog === 'publish' && (
        <ConfirmDialog
          title="Publish now?"
          verb="Publish now"
          danger={false}
          onClose={close}
          onConfirm={() =>
            act(() => call('POST /posts/{post_id}/publish', { path, body }), 'The post is on its way')
          }
        >
          The post goes out in a few seconds. A published post cannot be taken back here.
        </ConfirmDialog>
      )}
      {dialog === 'cancel' && (
        <ConfirmDialog
          title="Cancel the post?"
          verb="Cancel the post"
          onClose={close}
          onConfirm={() => act(() => call('POST /posts/{post_id}/cancel', { path, body }), 'Post cancelled')}
        >
          It is not published, and stays here so that you can schedule it again.
        </ConfirmDialog>
      )}
      {dialog === 'delete' && (
        <ConfirmDialog
          title="Delete the post?"
          verb="Delete"
          onClose={close}
          onConfirm={() =>
            act(async () => {
              await call('DELETE /posts/{post_id}', { path });
              navigate('/');
            }, 'Post deleted')
          }
        >
          Its text and history are removed. Nothing changes at the platform.
        </ConfirmDialog>
      )}
    </>
  );
}
