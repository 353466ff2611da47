import { type RouteServerOptions, serveRoutes } from './api/server.ts';
import { connectMethods } from './connect/connect.ts';
import { serveConnect } from './connect/door.ts';
import { createHttpApp } from './engine/app.ts';
import { DoorState } from './engine/door-state.ts';
import type { HttpApp } from './engine/engine.ts';
import { Stream, type StreamOptions } from './ws/stream.ts';

export type HttpDoorOptions = Omit<RouteServerOptions, 'door' | 'onRequest'> & {
  readonly maxHalfSentBytes: number;
  readonly stream: Omit<StreamOptions, 'door' | 'link' | 'own' | 'onError' | 'addressOf'>;
};

/** The HTTP side of one I/O thread: one listening socket for the API, Connect, WebSocket and the dashboard. */
export class HttpDoor {
  readonly #http: HttpApp;
  readonly #state: DoorState;
  readonly requests = { http: 0, connect: 0 };
  readonly stream: Stream;

  constructor(options: HttpDoorOptions) {
    const { ports, corsOrigins, own, bodyTimeoutMs, onError } = options;
    this.#http = createHttpApp((error) => onError(error, 'accepting an HTTP connection'));
    const { app } = this.#http;
    const door = new DoorState(options.maxHalfSentBytes);
    this.#state = door;
    const onDefect = (error: unknown): void => onError(error, 'a Connect call');
    serveConnect(app, {
      door,
      methods: connectMethods(ports, onDefect),
      corsOrigins,
      own,
      bodyTimeoutMs,
      addressOf: options.addressOf,
      onDefect,
      onRequest: () => {
        this.requests.connect += 1;
      },
    });
    this.stream = new Stream(app, {
      ...options.stream,
      door,
      link: ports.link,
      own,
      onError,
      addressOf: options.addressOf,
    });
    serveRoutes(app, {
      ...options,
      door,
      onRequest: () => {
        this.requests.http += 1;
      },
    });
  }

  get implementation(): HttpApp['implementation'] {
    return this.#http.implementation;
  }

  listen(host: string, port: number, isShared: boolean): Promise<number | undefined> {
    return this.#http.listen(host, port, isShared);
  }

  /** Accepts no new connections. Each answer on an open one asks its client to close it. */
  drain(): void {
    this.#http.stopListening();
    this.#state.isDraining = true;
  }

  /** Whether a body is still being sent, or an answer read. */
  get isBusy(): boolean {
    return this.#state.isBusy;
  }

  close(): void {
    this.#http.close();
  }
}
