import type { QueryClient, QueryKey } from '@tanstack/react-query';
import type { LiveEvent } from './eventStream';

const MIN_INTERVAL = 1_000;

/** The queries that an event of each kind makes stale. */
export type StaleQueries = Record<string, (data: LiveEvent['data']) => QueryKey[]>;

/** Refreshes the queries that an event makes stale, each at most once per second. */
export class Refresher {
  private readonly delayed = new Map<string, QueryKey>();
  private readonly timers = new Map<string, ReturnType<typeof setTimeout>>();

  constructor(
    private readonly client: QueryClient,
    private readonly staleQueries: StaleQueries,
  ) {}

  /** Stops all refreshes, including the delayed ones. */
  stop(): void {
    this.timers.forEach((timer) => clearTimeout(timer));
  }

  handle(event: LiveEvent): void {
    const stale = this.staleQueries[event.kind];
    if (stale) stale(event.data).forEach((key) => this.refresh(key));
    else this.refresh([]); // an unknown event or a gap: everything may have changed
  }

  refresh(key: QueryKey): void {
    const name = JSON.stringify(key);
    if (this.timers.has(name)) {
      this.delayed.set(name, key);
      return;
    }
    void this.client.invalidateQueries({ queryKey: key });
    const onTimer = () => {
      this.timers.delete(name);
      if (this.delayed.delete(name)) this.refresh(key);
    };
    this.timers.set(name, setTimeout(onTimer, MIN_INTERVAL));
  }
}
