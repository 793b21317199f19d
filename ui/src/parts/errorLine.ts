/** The line of an error that says most: the last of a traceback, the first of anything else. */
export function errorLine(error: string): string {
  const lines = error.trim().split('\n');
  return (lines[0]!.startsWith('Traceback') ? lines.at(-1) : lines[0]) ?? '';
}
