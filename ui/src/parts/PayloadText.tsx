import type { JobRow } from '../api/types';
import { cells } from './cells';

const MAX_LENGTH = 200;

/** A payload on one line: `customer: "c-1042", page: 1`. The tooltip has more of it. */
export function PayloadText({ job }: { job: JobRow }) {
  const text = textOf(job);
  return (
    <span className={`${cells.softLine} mono`} title={text}>
      {text.slice(0, MAX_LENGTH)}
    </span>
  );
}

export const hasFields = (job: JobRow): boolean => textOf(job) !== '';

function textOf({ payload, payload_bytes: size }: JobRow): string {
  if (payload === null && size > 'null'.length) return `payload of ${Math.ceil(size / 1024)} KB`;
  if (payload === null || typeof payload !== 'object' || Array.isArray(payload))
    return payload == null ? '' : JSON.stringify(payload);
  return Object.entries(payload)
    .map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
    .join(', ');
}
