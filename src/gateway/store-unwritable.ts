import { messageOf } from '../core/error-text.ts';

/**
 * Rejection of a store on this machine's disk when the system refuses a write, for example because the disk is full. It
 * is no defect: the caller is told to try again later, and the log tells the operator what to do.
 */
export class StoreUnwritable extends Error {
  override readonly name = 'StoreUnwritable';
  /** Both as in the system's error. */
  readonly code: unknown;
  readonly path: unknown;

  constructor(cause: unknown) {
    super(`the store cannot be written: ${messageOf(cause)}`, { cause });
    const { code, path } = Object(cause) as { readonly code?: unknown; readonly path?: unknown };
    this.code = code;
    this.path = path;
  }
}
