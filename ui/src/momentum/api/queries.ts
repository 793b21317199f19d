import { useQueries, useQuery } from '@tanstack/react-query';
import { usePolling } from '../live/usePolling';
import { useStatus } from '../session/statusContext';
import { call } from './call';
import type { Account, Media, Platform } from './types';

export function useAccounts() {
  return useQuery({
    queryKey: ['accounts'],
    queryFn: async ({ signal }) => (await call('GET /accounts', { signal })).items,
    refetchInterval: usePolling(),
  });
}

/** Accounts that a post can be written for: a disconnected one is only history. */
export const connected = (accounts: Account[] | undefined): Account[] =>
  (accounts ?? []).filter((account) => account.state !== 'disconnected');

export function usePlatforms(): Platform[] {
  return useStatus().status.platforms as unknown as Platform[];
}

/** The name of a platform for people. */
export function usePlatformTitle(): (name: string | null | undefined) => string {
  const platforms = usePlatforms();
  return (name) => platforms.find((platform) => platform.name === name)?.title ?? name ?? 'the platform';
}

export function usePost(id: string) {
  return useQuery({
    queryKey: ['post', id],
    queryFn: ({ signal }) => call('GET /posts/{post_id}', { path: { post_id: id }, signal }),
    refetchInterval: usePolling(),
  });
}

/** The files of a post. A stored file never changes. */
export function useMedia(ids: string[]): Map<string, Media> {
  const results = useQueries({
    queries: ids.map((id) => ({
      queryKey: ['media', id],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        call('GET /media/{media_id}', { path: { media_id: id }, signal }),
      staleTime: Infinity,
    })),
  });
  return new Map(results.flatMap(({ data }) => (data ? [[data.id, data] as const] : [])));
}
