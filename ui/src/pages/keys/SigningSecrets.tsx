import { Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useState, type SubmitEvent } from 'react';
import { call } from '../../api/call';
import { fieldErrors } from '../../forms/fieldErrors';
import { Section } from '../../forms/Section';
import { CopyText } from '../../parts/CopyText';
import { ProblemNote } from '../../parts/ProblemNote';
import { useHasScope } from '../../session/sessionContext';

/** Shows the secrets with which calls to a host are signed, so that its receiver can verify them. */
export function SigningSecrets() {
  const isAdmin = useHasScope('admin');
  const [url, setUrl] = useState('');
  const read = useMutation({
    mutationFn: () => call('GET /targets/signing-secrets', { query: { url: url.trim() } }),
  });
  const problem = fieldErrors(read.error)('url');
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    read.mutate();
  };
  return (
    <Section
      title="Signing secrets"
      description="Calls of HTTP targets and webhooks are signed, with a different secret for each host. Give it to the receiver, which verifies the calls with it."
    >
      <form onSubmit={submit}>
        <Group align="flex-start" gap="xs">
          <TextInput
            aria-label="URL of the receiver"
            placeholder="https://agent.example.org"
            value={url}
            onChange={(event) => setUrl(event.currentTarget.value)}
            error={problem}
            required
            withAsterisk={false}
            flex={1}
            maw={420}
          />
          <Button type="submit" variant="default" disabled={!isAdmin} loading={read.isPending}>
            Show secret
          </Button>
        </Group>
      </form>
      {read.error !== null && problem === undefined && <ProblemNote error={read.error} />}
      {read.data && (
        <Stack gap={4} role="status" align="flex-start" maw="100%">
          <Text size="sm">
            For {read.data.origin}
            {read.data.secrets.length > 1 && ', the current one first; calls carry a signature of each'}
          </Text>
          {read.data.secrets.map((secret) => (
            <CopyText key={secret} text={secret} label="Copy signing secret" />
          ))}
        </Stack>
      )}
    </Section>
  );
}
