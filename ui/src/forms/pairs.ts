export interface Pair {
  key: string;
  value: string;
}

export const pairsOf = (record: Record<string, string>): Pair[] =>
  Object.entries(record).map(([key, value]) => ({ key, value }));

/** Empty rows are left out. A value without a name is sent: the API says what is wrong with it. */
export function recordOf(pairs: readonly Pair[]): Record<string, string> {
  return Object.fromEntries(
    pairs.filter((pair) => pair.key.trim() || pair.value).map((pair) => [pair.key.trim(), pair.value]),
  );
}
