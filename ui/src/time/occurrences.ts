import { instantOf, localInput } from './format';

const DAY = 86_400_000;

/**
 * The instants of a local time in a time zone: usually one; none if clocks skip it, two if clocks are set
 * back over it.
 */
export function occurrences(local: string, zone: string): number[] {
  const first = instantOf(local, zone);
  if (first === null) return [];
  const wanted = localInput(Date.parse(`${local}Z`), 'UTC');
  const asUtc = Date.parse(`${wanted}Z`);
  const offsets = [first - DAY, first + DAY].map((near) => Date.parse(`${localInput(near, zone)}Z`) - near);
  const candidates = [...new Set(offsets.map((offset) => asUtc - Math.round(offset / 1_000) * 1_000))];
  return candidates.filter((at) => localInput(at, zone) === wanted).toSorted((a, b) => a - b);
}
