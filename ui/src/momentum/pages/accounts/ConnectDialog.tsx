import { Button, Group, Modal, SegmentedControl, Stack, Text, TextInput } from '@mantine/core';
import { useState, type SubmitEvent } from 'react';
import { asProblem, ProblemError } from '../../../api/problem';
import { usePlatforms } from '../../api/queries';
import { useStatus } from '../../session/statusContext';
import { connect } from './connect';

/** Platforms with many servers ask for one. */
const WITH_SERVER = new Set(['mastodon']);

export function ConnectDialog({ onClose }: { onClose: () => void }) {
  const platforms = usePlatforms();
  const { status } = useStatus();
  const [name, setName] = useState(platforms[0]?.name ?? '');
  const [server, setServer] = useState('');
  const [error, setError] = useState<ProblemError | null>(null);
  const [busy, setBusy] = useState(false);
  const title = platforms.find((platform) => platform.name === name)?.title ?? name;
  const needsServer = WITH_SERVER.has(name);

  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    try {
      await connect(name, needsServer ? server.trim() : undefined);
    } catch (caught) {
      setError(asProblem(caught));
      setBusy(false);
    }
  };
  return (
    <Modal opened onClose={onClose} title="Connect an account" closeButtonProps={{ 'aria-label': 'Close' }}>
      <form onSubmit={(event) => void submit(event)}>
        <Stack>
          {platforms.length > 1 && (
            <SegmentedControl
              aria-label="Platform"
              data={platforms.map((platform) => ({ value: platform.name, label: platform.title }))}
              value={name}
              onChange={setName}
              fullWidth
            />
          )}
          <Text size="sm" c="dimmed">
            {status.demo && name === 'linkedin'
              ? 'You continue at the demo’s own LinkedIn. It runs on this machine and publishes nothing.'
              : `You continue at ${title}, sign in there and allow Momentum to post for you. It never sees your password.`}
          </Text>
          {needsServer && (
            <TextInput
              label="Server"
              placeholder="mastodon.social"
              value={server}
              onChange={(event) => setServer(event.currentTarget.value)}
              required
              data-autofocus
            />
          )}
          {error && (
            <Text size="sm" c="red" role="alert">
              {error.message}
            </Text>
          )}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={busy}>
              Continue to {title}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
