export interface Pair {
  key: string;
  value: string;
}

export const pairsOf = (record: Record<string, string>): Pair[] =>
  Object.entries(record).map(([key, value]) => ({ key, value }));

/** Rows without a name are left out: the user is still typing. */
export function recordOf(pairs: readonly Pair[]): Record<string, string> {
  return Object.fromEntries(
    pairs.filter((pair) => pair.key.trim()).map((pair) => [pair.key.trim(), pair.value]),
  );
}
