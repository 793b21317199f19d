import { Button, PasswordInput, Stack } from '@mantine/core';
import { useState, type SubmitEvent } from 'react';
import { asProblem } from '../../api/problem';
import { call } from '../api/call';

/** Exchanges a key for a session cookie. The key itself is not kept in the browser. */
export function KeyForm({ onDone }: { onDone: () => void }) {
  const [key, setKey] = useState('');
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);

  async function submit(event: SubmitEvent) {
    event.preventDefault();
    setBusy(true);
    try {
      await call('POST /session', { body: { key: key.trim() } });
      onDone();
    } catch (caught) {
      setError(asProblem(caught).message);
    } finally {
      setBusy(false);
    }
  }

  return (
    <form onSubmit={(event) => void submit(event)}>
      <Stack>
        <PasswordInput
          label="Key"
          placeholder="mo_…"
          description="Create one with: momentum key create"
          value={key}
          onChange={(event) => setKey(event.currentTarget.value)}
          error={error}
          autoComplete="current-password"
          data-autofocus
          required
        />
        <Button type="submit" loading={busy}>
          Sign in
        </Button>
      </Stack>
    </form>
  );
}
