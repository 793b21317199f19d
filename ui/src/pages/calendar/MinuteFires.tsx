import { Anchor, Button, Group, Text } from '@mantine/core';
import { Link } from 'wouter';
import { call } from '../../api/call';
import { ProblemNote } from '../../parts/ProblemNote';
import { usePages } from '../../parts/usePages';
import { Timestamp } from '../../time/Timestamp';

const MINUTE = 60_000;

export function MinuteFires({ minute }: { minute: string }) {
  const to = new Date(Date.parse(minute) + MINUTE).toISOString();
  const list = usePages({
    key: ['calendar', 'fires', minute],
    fetch: (cursor, signal) =>
      call('GET /calendar/fires', {
        query: { from: minute, to, limit: 100, ...(cursor && { cursor }) },
        signal,
      }),
    refresh: false,
  });
  return (
    <div role="region" aria-label="Fires of the minute">
      {list.error !== null && <ProblemNote error={list.error} />}
      {list.rows.map((fire) => (
        <Group key={`${fire.schedule_id} ${fire.at}`} justify="space-between" py={5} wrap="nowrap">
          <Anchor component={Link} href={`/schedules/${fire.schedule_id}`} size="sm" truncate>
            {fire.name}
          </Anchor>
          <Text size="sm" c="dimmed" component="div">
            <code>{fire.target}</code> <Timestamp at={fire.at} />
          </Text>
        </Group>
      ))}
      {list.hasNextPage && (
        <Button
          size="xs"
          variant="subtle"
          loading={list.isFetchingNextPage}
          onClick={() => void list.fetchNextPage()}
        >
          Show more
        </Button>
      )}
    </div>
  );
}
