import { Alert, Anchor, Code, Text } from '@mantine/core';
import { Link } from 'wouter';
import type { Stats } from '../../api/types';
import { Icon } from '../../parts/Icon';

/** First steps, shown while there are no jobs or schedules. */
export function Welcome({ stats }: { stats: Stats }) {
  const idle =
    stats.live.pending + stats.live.running + stats.live.dead === 0 &&
    stats.series.every((point) => point.succeeded + point.failed === 0);
  if (!idle || stats.next.length > 0) return null;
  return (
    <Alert icon={<Icon name="bolt" />} title="No jobs yet">
      <Text size="sm">
        <Anchor component={Link} href="/schedules/new" inherit>
          Create a schedule
        </Anchor>
        ,{' '}
        <Anchor component={Link} href="/jobs/new" inherit>
          submit a job
        </Anchor>
        , or run <Code>duetime demo</Code> in a shell to add sample schedules.
      </Text>
    </Alert>
  );
}
