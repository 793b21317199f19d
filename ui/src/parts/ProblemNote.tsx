import { Alert, Button, Group, Text } from '@mantine/core';
import { asProblem } from '../api/problem';
import { Icon } from './Icon';

interface ProblemNoteProps {
  error: unknown;
  onRetry?: () => void;
  title?: string;
}

/** An error message with its error code and request id. */
export function ProblemNote({ error, onRetry, title = 'Something went wrong' }: ProblemNoteProps) {
  const problem = asProblem(error);
  return (
    <Alert color="red" icon={<Icon name="warning" />} title={title} role="alert">
      <Text size="sm">{problem.message}</Text>
      {problem.errors.length > 1 && (
        <Text component="ul" size="sm" m={0} pl="md">
          {problem.errors.map((fieldError) => (
            <li key={fieldError.field}>
              <code>{fieldError.field}</code> {fieldError.message}
            </li>
          ))}
        </Text>
      )}
      <Group gap="xs" mt={4}>
        <Text size="xs" c="dimmed">
          <code>{problem.code}</code>
          {problem.requestId && (
            <>
              {' '}
              · request <code>{problem.requestId}</code>
            </>
          )}
        </Text>
        {onRetry && (
          <Button size="compact-xs" variant="default" onClick={onRetry}>
            Try again
          </Button>
        )}
      </Group>
    </Alert>
  );
}
