import { messageOf } from '../core/error-text.ts';

/**
 * What a store on this machine's disk rejects with when the system takes nothing: the disk is full, say. It is no defect, so
 * whoever asked is told to come again, and the operator, in the log, what to do.
 */
export class StoreUnwritable extends Error {
  override readonly name = 'StoreUnwritable';
  /** As the system's error has them. */
  readonly code: unknown;
  readonly path: unknown;

  constructor(cause: unknown) {
    super(`the store cannot be written: ${messageOf(cause)}`, { cause });
    const { code, path } = Object(cause) as { readonly code?: unknown; readonly path?: unknown };
    this.code = code;
    this.path = path;
  }
}
