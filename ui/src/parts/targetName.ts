/** The display name of a target in failure counts. All HTTP targets are counted together. */
export const targetName = (name: string): string => (name === '@http' ? 'HTTP calls' : name);
