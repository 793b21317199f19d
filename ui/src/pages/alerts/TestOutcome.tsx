import { Anchor, Text } from '@mantine/core';
import { Link } from 'wouter';
import type { TestResult } from './useChannelTest';

/** How the test notice was received. */
export function TestOutcome({ result }: { result: TestResult }) {
  return (
    <Text size="xs" role="status" c={result.isDelivered ? 'var(--state-succeeded)' : 'var(--state-dead)'}>
      {result.channel} {result.text}
      {result.jobId !== null && (
        <>
          {' '}
          <Anchor component={Link} href={`/jobs/${result.jobId}`} size="xs" underline="always">
            Delivery
          </Anchor>
        </>
      )}
    </Text>
  );
}
