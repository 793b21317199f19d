import { call } from '../../api/call';

/** Leaves this page for the platform, where the person grants access and comes back. */
export async function connect(platform: string, server?: string): Promise<void> {
  const { url } = await call('POST /accounts/connect', { body: { platform, ...(server && { server }) } });
  window.location.assign(url);
}
