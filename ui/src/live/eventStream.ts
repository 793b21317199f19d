import { problemOf } from '../api/problem';

export interface LiveEvent {
  kind: string;
  id: string | null;
  data: {
    action?: string;
    id?: string;
    name?: string;
    state?: string;
    queue?: string;
    schedule?: string;
    at?: string;
    count?: number;
  };
}

/** Where the events come from. */
export interface EventSource {
  url: string;
  authorized: (fields: Record<string, string>) => Headers;
  credentials: RequestCredentials;
}

/**
 * Server-sent events over fetch, because EventSource cannot send an Authorization header. Ends when the
 * connection ends.
 */
export async function* eventStream(
  source: EventSource,
  lastId: string | null,
  signal: AbortSignal,
  onOpen: () => void,
): AsyncGenerator<LiveEvent> {
  const headers = source.authorized({ accept: 'text/event-stream' });
  if (lastId !== null) headers.set('last-event-id', lastId);
  const { url, credentials } = source;
  const response = await fetch(url, { headers, signal, credentials, cache: 'no-store' });
  if (!response.ok || response.body === null) throw await problemOf(response);
  onOpen();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).replaceAll('\r\n', '\n').split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const event = parse(block);
      if (event) yield event;
    }
  }
}

function parse(block: string): LiveEvent | null {
  const fields = block.split('\n').filter((line) => line && !line.startsWith(':'));
  const text = (name: string) =>
    fields
      .filter((line) => line.startsWith(`${name}:`))
      .map((line) => line.slice(name.length + 1).replace(/^ /, ''))
      .join('\n');
  if (fields.length === 0) return null;
  const data = text('data');
  return {
    kind: text('event') || 'message',
    id: text('id') || null,
    data: data ? (JSON.parse(data) as LiveEvent['data']) : {},
  };
}
