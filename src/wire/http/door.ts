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

  /**
   * The port, or undefined when it cannot be had. Threads may listen on the same one; whether another program does is asked
   * before any is started. The library's way to have a port alone would keep it from being taken again after a crash, for
   * as long as connections of before linger.
   */
  listen(host: string, port: number): number | undefined {
    const bound = this.#listenOn(host, port);
    if (port !== 0 || bound === undefined || this.implementation === 'javascript') return bound;
    // A port that the system has chosen, the library has alone. Taken by its number it is like any other.
    this.stopListening();
    return this.#listenOn(host, bound);
  }

  #listenOn(host: string, port: number): number | undefined {
    let bound: number | undefined;
    const onSocket = (socket: us_listen_socket | false): void => {
      if (socket === false) return;
      this.#socket = socket;
      bound = uws.us_socket_local_port(socket);
    };
    this.#app.listen(host, port, onSocket);
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
type Closable = { close(): void };
