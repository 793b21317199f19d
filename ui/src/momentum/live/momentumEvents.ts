import type { EventSource } from '../../live/eventStream';
import type { StaleQueries } from '../../live/refresher';
import { API, authorized, CREDENTIALS } from '../api/call';

export const SOURCE: EventSource = { url: `${API}/events`, authorized, credentials: CREDENTIALS };
export const SESSION = ['status'];
export const STALE: StaleQueries = {
  post: ({ id }) => [
    ['posts'],
    ['calendar'],
    ['inbox'],
    ['status'],
    ['log'],
    ...(id
      ? [
          ['post', id],
          ['timeline', id],
        ]
      : []),
  ],
  account: () => [['accounts'], ['inbox'], ['status']],
  heartbeat: () => [],
  ping: () => [],
};
