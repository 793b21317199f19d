/** The most useful line of an error: the last line of a traceback, otherwise the first line. */
export function errorLine(error: string): string {
  const lines = error.trim().split('\n');
  return (lines[0]!.startsWith('Traceback') ? lines.at(-1) : lines[0]) ?? '';
}
