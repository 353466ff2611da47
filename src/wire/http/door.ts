import uws, { type TemplatedApp, type us_listen_socket } from 'uWebSockets.js';
import { connectMethods } from '../connect.ts';
import type { WirePorts } from '../ports.ts';
import { serveConnect } from './connect-door.ts';
import { Stream, type StreamOptions } from '../ws/stream.ts';
import { serveRoutes, type RouteServerOptions } from './server.ts';

export type HttpDoorOptions = Omit<RouteServerOptions, 'onRequest'> & { readonly ports: WirePorts; readonly stream: Omit<StreamOptions, 'link' | 'onError'> };

/** The HTTP side of one I/O thread: one listening socket for the API, Connect, WebSocket and the dashboard. */
export class HttpDoor {
  readonly #app: TemplatedApp = uws.App();
  readonly requests = { http: 0, connect: 0 };
  /** Undefined where the library has no WebSocket: its fallback in JavaScript. */
  readonly stream: Stream | undefined;
  #socket: us_listen_socket | undefined;

  constructor(options: HttpDoorOptions) {
    const { ports, corsOrigins, bodyTimeoutMs, onError, link } = options;
    const onDefect = (error: unknown): void => onError(error, 'a Connect call');
    serveConnect(this.#app, { methods: connectMethods(ports, onDefect), corsOrigins, bodyTimeoutMs, onDefect, onRequest: () => { this.requests.connect += 1; } });
    this.stream = this.implementation === 'native' ? new Stream(this.#app, { ...options.stream, link, onError }) : undefined;
    serveRoutes(this.#app, { ...options, onRequest: () => { this.requests.http += 1; } });
  }

  /** The native library, or the slower one in JavaScript that its package falls back to. */
  get implementation(): 'native' | 'javascript' { return 'SSLApp' in uws ? 'native' : 'javascript'; }

  /** The port, or undefined when it cannot be had. `isShared` lets other threads listen on the same one. */
  listen(host: string, port: number, isShared: boolean): number | undefined {
    let bound: number | undefined;
    const onSocket = (socket: us_listen_socket | false): void => {
      if (socket === false) return;
      this.#socket = socket;
      bound = uws.us_socket_local_port(socket);
    };
    if (isShared || this.implementation === 'javascript') this.#app.listen(host, port, onSocket);
    else (this.#app as unknown as ExclusiveListener).listen(host, port, (uws as unknown as ExclusiveOption).LIBUS_LISTEN_EXCLUSIVE_PORT, onSocket);
    return bound;
  }

  stopListening(): void {
    if (this.#socket !== undefined) uws.us_listen_socket_close(this.#socket);
    this.#socket = undefined;
  }

  /**
   * Closes every socket. A thread must not end before: the library leaves its sockets in the thread's event loop, and
   * Node.js aborts the whole process for it.
   */
  close(): void {
    this.#socket = undefined;
    (this.#app as unknown as Closable).close();
  }
}

// In the library, but not in this version's types.
type ExclusiveOption = { readonly LIBUS_LISTEN_EXCLUSIVE_PORT: number };
type Closable = { close(): void };
type ExclusiveListener = { listen(host: string, port: number, options: number, onSocket: (socket: us_listen_socket | false) => void): void };
