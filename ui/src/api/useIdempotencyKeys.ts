import { useCallback, useState } from 'react';
import { newIdempotencyKey } from './caller';

/**
 * Keys by the body of a request: a form that is sent again after a lost answer acts once, and changed input is
 * another request.
 */
export function useIdempotencyKeys(): (body: unknown) => string {
  const [keys] = useState(() => new Map<string, string>());
  return useCallback(
    (body) => {
      const text = JSON.stringify(body);
      const key = keys.get(text) ?? newIdempotencyKey();
      keys.set(text, key);
      return key;
    },
    [keys],
  );
}
