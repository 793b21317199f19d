export interface ReadJson {
  value: unknown;
  problem: string | null;
}

export function readJson(text: string): ReadJson {
  if (!text.trim()) return { value: undefined, problem: null };
  try {
    return { value: JSON.parse(text) as unknown, problem: null };
  } catch (error) {
    return {
      value: undefined,
      problem: `Invalid JSON: ${error instanceof Error ? error.message : String(error)}`,
    };
  }
}

export const showJson = (value: unknown): string => (value == null ? '' : JSON.stringify(value, null, 2));
