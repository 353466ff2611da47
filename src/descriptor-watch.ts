import { open } from 'node:fs/promises';
import type { Logger } from './adapters/log.ts';
import { codeOf } from './core/error-text.ts';

/**
 * Returns a function that checks whether the process can open another file. When it cannot, no connection is accepted
 * either, and the native HTTP library reports nothing. So this logs it, once, and once more when it is over.
 */
export function createDescriptorWatch(log: Logger): () => Promise<void> {
  let isOut = false;
  return async () => {
    const code = await open(process.execPath)
      .then((file) => file.close())
      .then(() => undefined, codeOf);
    const isOutNow = code === 'EMFILE' || code === 'ENFILE';
    if (isOutNow === isOut) return;
    isOut = isOutNow;
    if (isOut)
      log.error('out of file descriptors: new connections wait and files cannot be opened', {
        code,
        remedy: 'raise the limit (ulimit -n, LimitNOFILE), or find out who opens so many connections',
      });
    else log.warn('file descriptors are available again');
  };
}
