export type Parts = Readonly<Record<string, unknown>>;

/** The parts of a stored value that its form does not show. The form sends them back as they are. */
export const hiddenParts = (value: object, shown: readonly string[]): Parts =>
  Object.fromEntries(Object.entries(value).filter(([name, part]) => part != null && !shown.includes(name)));
