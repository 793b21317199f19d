import { Badge, Button, Group, Stack, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { call } from '../api/call';
import type { TargetTest } from '../api/types';
import { Icon } from '../parts/Icon';
import { JsonBlock } from '../parts/JsonBlock';
import { ProblemNote } from '../parts/ProblemNote';
import { useHasScope } from '../session/sessionContext';
import { formatDuration } from '../time/format';
import { targetOf, type TargetDraft } from './targetDraft';

/** Sends the call once, as a job would, and shows the response. Nothing is stored. */
export function TestCall({ draft, payload }: { draft: TargetDraft; payload: unknown }) {
  const canManage = useHasScope('manage');
  const test = useMutation({
    mutationFn: () =>
      call('POST /targets/test', {
        body: { target: targetOf(draft), ...(payload !== undefined && { payload }) } as never,
      }),
  });
  return (
    <Stack gap="xs">
      <Button
        variant="default"
        leftSection={<Icon name="bolt" />}
        loading={test.isPending}
        disabled={!canManage}
        onClick={() => test.mutate()}
        w="fit-content"
      >
        Test call
      </Button>
      {test.error !== null && <ProblemNote error={test.error} title="Could not make the call" />}
      {test.data && <Outcome result={test.data} />}
    </Stack>
  );
}

function Outcome({ result }: { result: TargetTest }) {
  const succeeded = result.error === null;
  return (
    <Stack gap={6} role="status">
      <Group gap="xs">
        <Badge color={succeeded ? 'teal' : 'red'} variant="light" tt="none">
          {result.status ?? 'no response'}
        </Badge>
        <Text size="sm" c="dimmed">
          in {formatDuration(result.duration_ms)}
        </Text>
        {result.error && (
          <Text size="sm">
            {result.error.detail} <code>{result.error.code}</code>
          </Text>
        )}
      </Group>
      {result.body ? <JsonBlock value={result.body} label="Response" /> : null}
      {result.truncated && (
        <Text size="xs" c="dimmed">
          The response is longer. Only its beginning is shown.
        </Text>
      )}
    </Stack>
  );
}
