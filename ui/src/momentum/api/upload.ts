import { asProblem, ProblemError, unreachable } from '../../api/problem';
import { addressOf, readProblem } from './call';
import type { Media } from './types';

/** Uploads a file. `fetch` cannot report progress, so this is an XMLHttpRequest. */
export function upload(file: File, onProgress: (share: number) => void, signal: AbortSignal): Promise<Media> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open('POST', addressOf('/media', { name: file.name }));
    request.setRequestHeader('content-type', file.type || 'application/octet-stream');
    request.setRequestHeader('x-momentum', '1');
    request.upload.addEventListener('progress', (event) => {
      if (event.lengthComputable) onProgress(event.loaded / event.total);
    });
    request.addEventListener('load', () => {
      if (request.status === 201) resolve(JSON.parse(request.responseText) as Media);
      else void problemIn(request).then(reject);
    });
    request.addEventListener('error', () => reject(unreachable('POST')));
    signal.addEventListener('abort', () => {
      request.abort();
      reject(new DOMException('The upload was stopped.', 'AbortError'));
    });
    request.send(file);
  });
}

const problemIn = (request: XMLHttpRequest): Promise<ProblemError> =>
  readProblem(new Response(request.responseText, { status: request.status })).catch(asProblem);
