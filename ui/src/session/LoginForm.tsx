import { Button, Checkbox, PasswordInput, Stack } from '@mantine/core';
import { useState, type SubmitEvent } from 'react';
import { call } from '../api/call';
import { asProblem } from '../api/problem';
import { keyStore } from './keyStore';

export function LoginForm({ onDone }: { onDone: () => void }) {
  const [key, setKey] = useState('');
  const [keep, setKeep] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);

  async function submit(event: SubmitEvent) {
    event.preventDefault();
    setBusy(true);
    keyStore.write(key.trim(), keep);
    try {
      await call('GET /me', {});
      onDone();
    } catch (caught) {
      keyStore.forget();
      const problem = asProblem(caught);
      setError(`${problem.message} (${problem.code})`);
    } finally {
      setBusy(false);
    }
  }

  return (
    <form onSubmit={(event) => void submit(event)}>
      <Stack>
        <PasswordInput
          label="API key"
          placeholder="dt_…"
          description="Create one with: duetime key create"
          value={key}
          onChange={(event) => setKey(event.currentTarget.value)}
          error={error}
          autoComplete="current-password"
          data-autofocus
          required
        />
        <Checkbox
          label="Stay signed in on this browser"
          checked={keep}
          onChange={(event) => setKeep(event.currentTarget.checked)}
        />
        <Button type="submit" loading={busy}>
          Sign in
        </Button>
      </Stack>
    </form>
  );
}
