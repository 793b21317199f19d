import { Button, Group, Modal, Stack, Text } from '@mantine/core';
import { useState, type SubmitEvent } from 'react';
import { useViewerZone } from '../../../time/viewerZone';
import { resolveWhen, whenOf, type When } from '../../when/when';
import { WhenInput } from '../../when/WhenInput';
import { useMove, type Movable } from './useMove';

interface MoveDialogProps {
  post: Movable & { scheduled_at: string | null; title: string };
  onClose: () => void;
}

/** Another time for a post; the keyboard's way to drag it. */
export function MoveDialog({ post, onClose }: MoveDialogProps) {
  const zone = useViewerZone();
  const move = useMove();
  const [busy, setBusy] = useState(false);
  const [when, setWhen] = useState<When>(() =>
    post.scheduled_at
      ? whenOf(Date.parse(post.scheduled_at), zone)
      : { date: '', time: '', zone, later: false },
  );
  const resolved = resolveWhen(when);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    if (resolved === null) return;
    setBusy(true);
    const moved = await move(post, resolved.at, when.zone);
    setBusy(false);
    if (moved) onClose();
  };
  const verb = post.scheduled_at ? 'Move' : 'Schedule';
  return (
    <Modal
      opened
      onClose={onClose}
      size="lg"
      title={`${verb} the post`}
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <form onSubmit={(event) => void submit(event)}>
        <Stack>
          <Text size="sm" c="dimmed" lineClamp={2}>
            {post.title}
          </Text>
          <WhenInput
            value={when}
            onChange={(change) => setWhen((previous) => ({ ...previous, later: false, ...change }))}
            focusFirst
            required
          />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={busy}>
              {verb}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
