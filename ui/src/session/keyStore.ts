const NAME = 'duetime-key';

/**
 * The user's API key, kept for this tab or until the user signs out. It is sent as a bearer token, never as a
 * cookie.
 */
export const keyStore = {
  read: (): string | null => sessionStorage.getItem(NAME) ?? localStorage.getItem(NAME),
  write(key: string, keep: boolean): void {
    keyStore.forget();
    (keep ? localStorage : sessionStorage).setItem(NAME, key);
  },
  forget(): void {
    sessionStorage.removeItem(NAME);
    localStorage.removeItem(NAME);
  },
};
