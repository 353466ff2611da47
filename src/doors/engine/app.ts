import type { us_listen_socket } from 'uWebSockets.js';
import { createRequire } from 'node:module';
import type { HttpApp } from './engine.ts';

type Uws = typeof import('uWebSockets.js');

/** Undefined where it does not load. */
export const native = loadNative();

/**
 * The native library where it loads, else node:http behind the same interface, which reports connections it cannot
 * accept to `onError`.
 */
export const createHttpApp: (onError: (error: unknown) => void) => HttpApp =
  native === undefined ? (await import('./node-app.ts')).createNodeApp : () => createNativeApp(native);

/**
 * Where its binary does not load, the package prints a long warning and uses a stand-in; the gateway logs one line
 * instead.
 */
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
     * Several threads listen on the same port; `probeAddresses` has checked that no other program does. The library's
     * exclusive mode would refuse the port after a crash for as long as old connections linger.
     */
    listen: async (host, port) => {
      const bound = listenOn(host, port);
      if (port !== 0 || bound === undefined) return bound;
      // The library opens a port chosen by the system exclusively. Reopened by its number, it can be shared.
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
