import { Paper, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { ProblemNote } from '../../../parts/ProblemNote';
import { formatDuration } from '../../../time/format';
import { Timestamp } from '../../../time/Timestamp';
import { call } from '../../api/call';
import type { Post, TimelineItem } from '../../api/types';
import { usePolling } from '../../live/usePolling';
import { outcomeLabel, outcomeTone } from '../../parts/outcomes';
import classes from './Timeline.module.css';

/** What happened to a post: events, and every attempt to publish it. */
export function Timeline({ post }: { post: Post }) {
  const { data, error, refetch } = useQuery({
    queryKey: ['timeline', post.id],
    queryFn: ({ signal }) => call('GET /posts/{post_id}/timeline', { path: { post_id: post.id }, signal }),
    refetchInterval: usePolling(),
  });
  return (
    <Paper withBorder p="md" component="section" aria-label="Timeline">
      <Title order={2} size="h5" mb="md">
        Timeline
      </Title>
      {error !== null && <ProblemNote error={error} onRetry={() => void refetch()} />}
      <ol className={classes.list}>
        {data?.items.map((item, index) => (
          // oxlint-disable-next-line react/no-array-index-key -- the timeline only grows at its end
          <Line key={index} item={item} post={post} />
        ))}
      </ol>
    </Paper>
  );
}

function Line({ item, post }: { item: TimelineItem; post: Post }) {
  const attempt = item.type === 'attempt';
  return (
    <li className={classes.item} data-tone={attempt ? outcomeTone(item.outcome) : toneOfEvent(item.kind)}>
      <div className={classes.head}>
        <span>
          {attempt ? `Attempt ${item.number ?? ''}: ${outcomeLabel(item.outcome)}` : eventLabel(item.kind)}
          {item.actor && <span className={classes.detail}> · {item.actor}</span>}
        </span>
        <Timestamp at={item.at} />
      </div>
      {attempt && <div className={classes.detail}>{attemptFacts(item, post)}</div>}
      {item.detail && <div className={classes.detail}>{item.detail}</div>}
    </li>
  );
}

function attemptFacts(item: TimelineItem, post: Post): string {
  const began = Date.parse(item.at);
  const late = post.scheduled_at ? began - Date.parse(post.scheduled_at) : 0;
  return [
    late > 0 && `began ${formatDuration(late)} after its time`,
    item.ended_at && `took ${formatDuration(Date.parse(item.ended_at) - began)}`,
    item.status && `HTTP ${item.status}`,
    item.error_code,
    item.request_id && `request ${item.request_id}`,
  ]
    .filter(Boolean)
    .join(' · ');
}

/** "needs_reconnection" becomes "Needs reconnection". */
function eventLabel(kind: string): string {
  const words = kind.replaceAll(/[._]/g, ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

const EVENT_TONES: Record<string, string> = {
  published: 'succeeded',
  failed: 'dead',
  unknown: 'retrying',
  publishing: 'running',
};

const toneOfEvent = (kind: string): string => EVENT_TONES[kind] ?? 'pending';
