import { useQueryClient } from '@tanstack/react-query';
import { useCallback } from 'react';
import { showError, showSuccess } from './toasts';

/** Returns a function that runs an action, shows whether it succeeded, and refreshes all data. */
export function useAction() {
  const client = useQueryClient();
  return useCallback(
    (action: () => Promise<unknown>, message: string): void => {
      void action()
        .then(() => showSuccess(message), showError)
        .then(() => client.invalidateQueries());
    },
    [client],
  );
}
