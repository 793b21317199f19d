const NAME = 'duetime-key';

/** The API key of this browser: for this tab, or kept until signing out. Sent as a bearer token, never as a cookie. */
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
