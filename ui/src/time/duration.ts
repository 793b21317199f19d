const MILLISECONDS: Record<string, number> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/** Milliseconds of a duration such as "15m" or "1h30m"; null if it is not one. The server has the last word. */
export function parseDuration(text: string): number | null {
  const parts = [...text.trim().matchAll(/(\d+(?:\.\d+)?)(ms|[smhdw])/g)];
  if (parts.length === 0 || parts.map(([part]) => part).join('') !== text.trim()) return null;
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * MILLISECONDS[unit!]!, 0);
}
