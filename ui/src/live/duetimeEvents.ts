import { API, authorized } from '../api/call';
import type { EventSource } from './eventStream';
import type { StaleQueries } from './refresher';

export const SOURCE: EventSource = {
  url: `${API}/events?types=job,schedule,node,queue`,
  authorized,
  credentials: 'omit',
};
export const SESSION = ['me'];
export const STALE: StaleQueries = {
  job: ({ id, schedule }) => [
    ['jobs'],
    ['stats'],
    ['dead'],
    ['queues'],
    ['timeline'],
    ...(id
      ? [
          ['job', id],
          ['job-why', id],
        ]
      : []),
    ...(schedule ? [['schedule-runs', schedule]] : []),
  ],
  schedule: () => [['schedules'], ['schedule'], ['versions'], ['calendar'], ['schedule-why'], ['stats']],
  node: () => [['nodes'], ['leases'], ['stats']],
  queue: () => [['queues'], ['job-why']],
};
