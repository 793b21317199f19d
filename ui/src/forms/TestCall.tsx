import { Badge, Button, Group, Stack, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { call } from '../api/call';
import type { TestedCall } from '../api/types';
import { Icon } from '../parts/Icon';
import { JsonBlock } from '../parts/JsonBlock';
import { ProblemNote } from '../parts/ProblemNote';
import { useMay } from '../session/sessionContext';
import { lasting } from '../time/format';
import { targetOf, type TargetDraft } from './targetDraft';

/** Sends the call once, as a job would, and shows what came back. Nothing is stored. */
export function TestCall({ draft, payload }: { draft: TargetDraft; payload: unknown }) {
  const may = useMay('manage');
  const test = useMutation({
    mutationFn: () => call('POST /targets/test', { body: { target: targetOf(draft), ...(payload !== undefined && { payload }) } as never }),
  });
  return (
    <Stack gap="xs">
      <Button variant="default" leftSection={<Icon name="bolt" />} loading={test.isPending} disabled={!draft.url.trim() || !may} onClick={() => test.mutate()} w="fit-content">
        Test call
      </Button>
      {test.error !== null && <ProblemNote error={test.error} title="The call was not made" />}
      {test.data && <Outcome answer={test.data} />}
    </Stack>
  );
}

function Outcome({ answer }: { answer: TestedCall }) {
  const fine = answer.error === null;
  return (
    <Stack gap={6} role="status">
      <Group gap="xs">
        <Badge color={fine ? 'teal' : 'red'} variant="light" tt="none">
          {answer.status ?? 'no answer'}
        </Badge>
        <Text size="sm" c="dimmed">
          in {lasting(answer.duration_ms)}
        </Text>
        {answer.error && (
          <Text size="sm">
            {answer.error.detail} <code>{answer.error.code}</code>
          </Text>
        )}
      </Group>
      {answer.body ? <JsonBlock value={answer.body} label="Answer" /> : null}
      {answer.truncated && (
        <Text size="xs" c="dimmed">
          The answer is longer; this is its beginning.
        </Text>
      )}
    </Stack>
  );
}
