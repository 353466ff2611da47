import pg from 'pg';

/**
 * A connection of the pool, which says when it is to connect why it cannot be made. The driver throws that: of a certificate that
 * the URL names and that is not there, as while it is being renewed. The pool makes connections also where nobody could catch it.
 */
export class PoolClient extends pg.Client {
  constructor(options?: pg.ClientConfig) {
    try {
      super(options);
    } catch (error) {
      super({});
      Object.assign(this, { connect: (callback: (error: unknown) => void) => process.nextTick(callback, error) });
    }
  }
}
