const LABELS: Record<string, string> = {
  PUBLIC: 'Anyone',
  CONNECTIONS: 'Connections only',
  LOGGED_IN: 'Signed-in members',
  UNLISTED: 'Unlisted',
  PRIVATE: 'Followers only',
  DIRECT: 'Mentioned people',
};

/** Who can see a post, in plain words. */
export const visibilityLabel = (visibility: string): string =>
  LABELS[visibility.toUpperCase()] ?? visibility.toLowerCase().replaceAll('_', ' ');
