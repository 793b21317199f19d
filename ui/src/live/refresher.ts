import type { QueryClient, QueryKey } from '@tanstack/react-query';
import type { LiveEvent } from './eventStream';

const PAUSE = 1_000;

const STALE: Record<string, (data: LiveEvent['data']) => QueryKey[]> = {
  job: ({ id, schedule }) => [
    ['jobs'], ['stats'], ['dead'], ['queues'], ['timeline'],
    ...(id ? [['job', id], ['job-why', id]] : []),
    ...(schedule ? [['schedule-runs', schedule]] : []),
  ],
  schedule: () => [['schedules'], ['schedule'], ['versions'], ['calendar'], ['schedule-why'], ['stats']],
  node: () => [['nodes'], ['leases'], ['stats']],
  queue: () => [['queues'], ['job-why']],
};

/** Has what an event made stale fetched anew, each list at most once a second however many events there are. */
export class Refresher {
  private readonly waiting = new Map<string, QueryKey>();
  private readonly resting = new Map<string, ReturnType<typeof setTimeout>>();

  constructor(private readonly client: QueryClient) {}

  /** Nothing is fetched any more, not even what waits for its turn. */
  stop(): void {
    this.resting.forEach((timer) => clearTimeout(timer));
  }

  take(event: LiveEvent): void {
    const stale = STALE[event.kind];
    if (stale) stale(event.data).forEach((key) => this.refresh(key));
    else this.refresh([]); // many events, or a gap in them: everything may have changed
  }

  refresh(key: QueryKey): void {
    const name = JSON.stringify(key);
    if (this.resting.has(name)) {
      this.waiting.set(name, key);
      return;
    }
    void this.client.invalidateQueries({ queryKey: key });
    const rested = () => {
      this.resting.delete(name);
      if (this.waiting.delete(name)) this.refresh(key);
    };
    this.resting.set(name, setTimeout(rested, PAUSE));
  }
}
