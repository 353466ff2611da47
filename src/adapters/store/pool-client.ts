import pg from 'pg';

/**
 * A connection of the pool that reports a failed construction when it connects. The driver's constructor throws, for
 * example if a certificate named in the URL is missing while it is being renewed, and the pool also constructs
 * connections where nothing could catch that.
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
