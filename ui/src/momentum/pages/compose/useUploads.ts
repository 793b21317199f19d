import { useCallback, useEffect, useRef, useState } from 'react';
import { asProblem } from '../../../api/problem';
import { upload } from '../../api/upload';
import type { Media } from '../../api/types';

export interface RunningUpload {
  key: number;
  name: string;
  /** From 0 to 1. At 1 the server still checks the file. */
  progress: number;
  error: string | null;
}

/** Files on their way to the server. */
export function useUploads(onDone: (media: Media) => void) {
  const [uploads, setUploads] = useState<RunningUpload[]>([]);
  const aborts = useRef(new Map<number, AbortController>());
  const last = useRef(0);

  useEffect(() => {
    const running = aborts.current;
    return () => running.forEach((abort) => abort.abort());
  }, []);

  const change = useCallback((key: number, next: Partial<RunningUpload>) => {
    setUploads((all) => all.map((one) => (one.key === key ? { ...one, ...next } : one)));
  }, []);
  const remove = useCallback((key: number) => {
    aborts.current.get(key)?.abort();
    aborts.current.delete(key);
    setUploads((all) => all.filter((one) => one.key !== key));
  }, []);
  const add = useCallback(
    (files: File[]) => {
      for (const file of files) {
        const key = ++last.current;
        const abort = new AbortController();
        aborts.current.set(key, abort);
        setUploads((all) => [...all, { key, name: file.name, progress: 0, error: null }]);
        upload(file, (progress) => change(key, { progress }), abort.signal).then(
          (media) => {
            remove(key);
            onDone(media);
          },
          (error: unknown) => {
            if (!abort.signal.aborted) change(key, { error: asProblem(error).message });
          },
        );
      }
    },
    [change, remove, onDone],
  );
  return { uploads, add, remove };
}
