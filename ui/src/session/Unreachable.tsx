import { Button, Center, Stack, Text, Title } from '@mantine/core';
import type { ProblemError } from '../api/problem';

export function Unreachable({ problem, onRetry }: { problem: ProblemError; onRetry: () => void }) {
  return (
    <Center component="main" mih="100vh" p="md">
      <Stack align="center" gap="sm" maw={440} ta="center">
        <Title order={1} size="h3">
          The server does not respond
        </Title>
        <Text c="dimmed">
          {problem.message} <code>{problem.code}</code>
        </Text>
        <Button variant="default" onClick={onRetry}>
          Try again
        </Button>
      </Stack>
    </Center>
  );
}
