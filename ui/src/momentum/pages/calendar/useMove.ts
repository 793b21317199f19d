import { useQueryClient } from '@tanstack/react-query';
import { useCallback } from 'react';
import { showError, showSuccess } from '../../../parts/toasts';
import { serverNow } from '../../../time/clock';
import { fullTime } from '../../../time/format';
import { call } from '../../api/call';
import { whenFields } from '../../when/when';

export interface Movable {
  id: string;
  version: number;
}

/** Plans a post for another time, unless another user changed it in the meantime. */
export function useMove() {
  const client = useQueryClient();
  return useCallback(
    async ({ id, version }: Movable, at: number, zone: string): Promise<boolean> => {
      const request = call('POST /posts/{post_id}/schedule', {
        path: { post_id: id },
        body: { ...whenFields(at, zone), version },
      });
      const moved = await request.then(
        () => true,
        (error: unknown) => {
          showError(error);
          return false;
        },
      );
      if (moved) showSuccess(`Planned for ${fullTime(at, zone, serverNow())}`);
      await client.invalidateQueries();
      return moved;
    },
    [client],
  );
}
