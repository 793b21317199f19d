import { useEffect } from 'react';

const PRODUCT = document.title;

/** Names the browser's tab after what it shows, as long as that is shown. */
export function useDocumentTitle(name: string): void {
  useEffect(() => {
    document.title = name ? `${name} · ${PRODUCT}` : PRODUCT;
    return () => {
      document.title = PRODUCT;
    };
  }, [name]);
}
