import { createRequire } from 'node:module';
import type { TemplatedApp, us_listen_socket } from 'uWebSockets.js';
import { createNodeApp } from './node-app.ts';

/** The HTTP library with what the doors hang their handlers on, and its listening socket. */
export type HttpApp = {
  readonly implementation: 'native' | 'javascript';
  readonly app: TemplatedApp;
  /** Resolves with the port, or undefined when it is not available. `isShared`: other threads listen on the same port. */
  listen(host: string, port: number, isShared: boolean): Promise<number | undefined>;
  stopListening(): void;
  /** Closes every socket. */
  close(): void;
};

type Uws = typeof import('uWebSockets.js');

/** The native library where it loads, else node:http in its shape, which tells `onError` what it cannot accept. */
export const createHttpApp = (onError: (error: unknown) => void): HttpApp => (native === undefined ? createNodeApp(onError) : createNativeApp(native));

const native = loadNative();

/** Where its binary does not load, the package prints a long warning and uses a stand-in; the gateway logs one line instead. */
function loadNative(): Uws | undefined {
  const { log, warn } = console;
  console.log = console.warn = () => undefined;
  try {
    const loaded = createRequire(import.meta.url)('uWebSockets.js') as Uws;
    return 'SSLApp' in loaded ? loaded : undefined;
  } catch {
    return undefined; // not installed, or not for this system: handled in the same way
  } finally {
    Object.assign(console, { log, warn });
  }
}

function createNativeApp(uws: Uws): HttpApp {
  const app = uws.App();
  let socket: us_listen_socket | undefined;

  const listenOn = (host: string, port: number): number | undefined => {
    let bound: number | undefined;
    app.listen(host, port, (listening) => {
      if (listening === false) return;
      socket = listening;
      bound = uws.us_socket_local_port(listening);
    });
    return bound;
  };
  const stopListening = (): void => {
    if (socket !== undefined) uws.us_listen_socket_close(socket);
    socket = undefined;
  };

  return {
    implementation: 'native',
    app,
    /**
     * Threads may listen on the same port; whether another program does is asked before any is started. The library's way
     * to have a port alone would keep it from being taken again after a crash, for as long as connections of before linger.
     */
    listen: async (host, port) => {
      const bound = listenOn(host, port);
      if (port !== 0 || bound === undefined) return bound;
      // The library opens a port chosen by the system for itself alone. Opened again by its number, it can be shared.
      stopListening();
      return listenOn(host, bound);
    },
    stopListening,
    // A thread must not end before: the library leaves its sockets in the thread's event loop, and Node.js aborts the
    // whole process for it. The method is in the library, but not in this version's types.
    close: () => {
      socket = undefined;
      (app as unknown as { close(): void }).close();
    },
  };
}
