import { open } from 'node:fs/promises';
import { codeOf } from '../core/base/text.ts';
import { isOutOfDescriptors } from './files.ts';
import type { Logger } from './log.ts';

/** How often to check that the process can open another file. */
const LOOK_EVERY_MS = 2_000;

/**
 * Whether the process can open another file. When it cannot, no connection is accepted either, and the native HTTP
 * library reports nothing. So this logs it, once, and once more when it is over.
 */
export class OpenFiles {
  readonly #log: Logger;
  readonly #timer = setInterval(() => void this.#look(), LOOK_EVERY_MS).unref();
  #areAllInUse = false;

  constructor(log: Logger) {
    this.#log = log;
  }

  get areAllInUse(): boolean {
    return this.#areAllInUse;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    const error: unknown = await open(process.execPath)
      .then((file) => file.close())
      .then(undefined, (failure: unknown) => failure);
    const areAllInUse = isOutOfDescriptors(error);
    if (areAllInUse === this.#areAllInUse) return;
    this.#areAllInUse = areAllInUse;
    if (areAllInUse)
      this.#log.error('out of file descriptors: new connections wait and files cannot be opened', {
        code: codeOf(error),
        remedy: 'raise the limit (ulimit -n, LimitNOFILE), or find out who opens so many connections',
      });
    else this.#log.warn('file descriptors are available again');
  }
}
