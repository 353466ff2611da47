import type { TlsIdentity } from '../ports/tls.ts';
import { type RouteServerOptions, serveRoutes } from './api/server.ts';
import { connectMethods } from './connect/connect.ts';
import { serveConnect } from './connect/door.ts';
import { type ChosenEngine, chooseEngine, type EngineChoice } from './engine/choose.ts';
import { DoorState } from './engine/door-state.ts';
import { Stream, type StreamOptions } from './ws/stream.ts';

export type HttpDoorOptions = Omit<RouteServerOptions, 'door' | 'onRequest'> & {
  readonly engine: EngineChoice;
  readonly tls: TlsIdentity | undefined;
  readonly maxHalfSentBytes: number;
  readonly stream: Omit<StreamOptions, 'door' | 'link' | 'own' | 'onError' | 'addressOf'>;
};

/** The HTTP side of one I/O thread: one listening socket for the API, Connect, WebSocket and the dashboard. */
export class HttpDoor {
  readonly #chosen: ChosenEngine;
  readonly #state: DoorState;
  readonly requests = { http: 0, connect: 0 };
  readonly stream: Stream;

  /** Throws where the engine that is demanded does not load. */
  constructor(options: HttpDoorOptions) {
    const { ports, corsOrigins, own, bodyTimeoutMs, onError } = options;
    const onRefused = (error: unknown): void => onError(error, 'accepting an HTTP connection');
    this.#chosen = chooseEngine(options.engine, onRefused, undefined, options.tls);
    const { engine } = this.#chosen;
    const door = new DoorState(options.maxHalfSentBytes);
    this.#state = door;
    const onDefect = (error: unknown): void => onError(error, 'a Connect call');
    serveConnect(engine, {
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
    this.stream = new Stream(engine, {
      ...options.stream,
      door,
      link: ports.link,
      own,
      onError,
      addressOf: options.addressOf,
    });
    serveRoutes(engine, {
      ...options,
      door,
      onRequest: () => {
        this.requests.http += 1;
      },
    });
  }

  /** Describes the HTTP engine to the operator. */
  get engine(): string {
    return this.#chosen.description;
  }

  listen(host: string, port: number, isShared: boolean): Promise<number | undefined> {
    return this.#chosen.engine.listen(host, port, isShared);
  }

  renewTls(identity: TlsIdentity): void {
    this.#chosen.engine.renewTls?.(identity);
  }

  /** Accepts no new connections. Each answer on an open one asks its client to close it. */
  drain(): void {
    this.#chosen.engine.stopListening();
    this.#state.isDraining = true;
  }

  /** Whether a body is still being sent, or an answer read. */
  get isBusy(): boolean {
    return this.#state.isBusy;
  }

  close(): void {
    this.#chosen.engine.close();
  }
}
