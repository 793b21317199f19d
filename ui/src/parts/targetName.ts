/** The name under which failures of a target are counted; calls of addresses share one. */
export const targetName = (name: string): string => (name === '@http' ? 'HTTP calls' : name);
