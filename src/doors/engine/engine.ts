import type { TemplatedApp } from 'uWebSockets.js';

/** The app that handlers are registered on, and its listening socket. */
export type HttpApp = {
  readonly implementation: 'native' | 'javascript';
  readonly app: TemplatedApp;
  /**
   * Resolves with the port, or undefined when it is not available. `isShared`: other threads listen on the same port.
   */
  listen(host: string, port: number, isShared: boolean): Promise<number | undefined>;
  stopListening(): void;
  /** Closes every socket. */
  close(): void;
};
