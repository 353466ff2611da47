import { Socket } from 'node:net';
import pg from 'pg';
import { messageOf } from '../core/base/text.ts';
import type { Bus, ClusterMessage, RunId } from '../ports/cluster.ts';
import {
  FRAME_BYTES,
  Frames,
  type FramesOptions,
  MAX_MESSAGE_BYTES,
  MAX_WAITING_BYTES,
  type Outgoing,
} from './frames.ts';

export type PostgresBusOptions = FramesOptions & {
  /** The URL of a connection that no pooler shares: `LISTEN` belongs to a session. */
  readonly url: string;
  readonly log: {
    info(message: string, fields?: object): void;
    warn(message: string, fields?: object): void;
  };
};

const ALL = 'svc_cluster';
const inboxOf = (run: RunId): string => `svc_run_${run}`;

/** PostgreSQL takes less than 8,000 bytes. */
const MAX_TEXT_BYTES = 7_900 - FRAME_BYTES;
const CONNECT_TIMEOUT_MS = 3_000;
const PING_EVERY_MS = 1_000;
const RECONNECT_PAUSE_MS = 500;
/** With a name, so that the server plans it once per connection: to plan it takes longer than to run it. */
const NOTIFY = { name: 'notify', text: 'SELECT pg_notify(c, p) FROM unnest($1::text[], $2::text[]) AS u (c, p)' };

/**
 * The bus over `LISTEN` and `NOTIFY`, on a connection of its own: notifying waits for a lock of the whole server, so
 * nothing else may happen in that transaction. Messages that come while a batch is under way make up the next one.
 */
export class PostgresBus implements Bus {
  readonly #options: PostgresBusOptions;
  readonly #messageListeners: ((from: RunId, message: ClusterMessage) => void)[] = [];
  readonly #gapListeners: (() => void)[] = [];
  readonly #frames: Frames;
  #waiting: Outgoing[] = [];
  #waitingBytes = 0;
  #client: pg.Client | undefined;
  #socket: Socket | undefined;
  #isConnected = false;
  #isFlushing = false;
  #isClosed = false;
  #wasConnected = false;
  #pings: NodeJS.Timeout | undefined;
  #retry: NodeJS.Timeout | undefined;
  #connecting: Promise<void> = Promise.resolve();

  constructor(options: PostgresBusOptions) {
    this.#options = options;
    this.#frames = new Frames(options);
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  onMessage(listener: (from: RunId, message: ClusterMessage) => void): void {
    this.#messageListeners.push(listener);
  }

  onGap(listener: () => void): void {
    this.#gapListeners.push(listener);
  }

  /** Resolves when the first attempt to connect is over; it goes on trying by itself. */
  start(): Promise<void> {
    this.#pings = setInterval(() => this.#ping(), PING_EVERY_MS);
    this.#connecting = this.#connect();
    return this.#connecting;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#pings);
    clearTimeout(this.#retry);
    this.#socket?.destroy();
    await this.#connecting;
  }

  send(to: RunId | 'all', message: ClusterMessage): boolean {
    if (!this.#isConnected) return false;
    const text = JSON.stringify(message);
    const bytes = Buffer.byteLength(text);
    if (bytes > MAX_MESSAGE_BYTES || this.#waitingBytes + bytes > MAX_WAITING_BYTES) return false;
    this.#waitingBytes += bytes;
    this.#waiting.push({ channel: to === 'all' ? ALL : inboxOf(to), text });
    if (!this.#isFlushing) {
      this.#isFlushing = true;
      setImmediate(() => void this.#flush());
    }
    return true;
  }

  async #flush(): Promise<void> {
    while (this.#waiting.length > 0 && this.#client !== undefined && this.#isConnected) {
      const waiting = this.#waiting;
      this.#waiting = [];
      this.#waitingBytes = 0;
      const frames = this.#frames.pack(waiting, MAX_TEXT_BYTES);
      try {
        await this.#client.query({
          ...NOTIFY,
          values: [frames.map(({ channel }) => channel), frames.map(({ payload }) => payload)],
        });
      } catch (error) {
        // The numbers are used up: the receiver of the next message knows that some are missing.
        this.#lost(error);
      }
    }
    this.#isFlushing = false;
  }

  async #connect(): Promise<void> {
    const socket = new Socket();
    this.#socket = socket;
    try {
      const client = this.#clientOn(socket); // reads the certificates that the URL names
      this.#client = client;
      await client.connect();
      await client.query(`LISTEN ${ALL}; LISTEN "${inboxOf(this.#options.self)}"`);
    } catch (error) {
      return this.#lost(error);
    }
    if (this.#isClosed || this.#client === undefined) return void socket.destroy();
    this.#isConnected = true;
    if (this.#wasConnected) this.#options.log.info('the bus of the cluster is connected again');
    this.#wasConnected = true;
    this.#frames.forgiveGaps();
    this.#gap();
  }

  #clientOn(socket: Socket): pg.Client {
    const client = new pg.Client({
      connectionString: this.#options.url,
      application_name: 'svc-gateway bus',
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: CONNECT_TIMEOUT_MS,
      keepAlive: true,
      stream: () => socket,
    });
    const lost = (error: Error): void => {
      if (client === this.#client) this.#lost(error);
    };
    client.on('error', lost);
    client.on('end', () => lost(new Error('the connection was closed')));
    client.on('notification', ({ channel, payload }) => this.#receive(channel, payload ?? ''));
    return client;
  }

  #lost(error: unknown): void {
    if (this.#isClosed) return;
    if (this.#isConnected) this.#options.log.warn('the bus of the cluster is cut off', { cause: messageOf(error) });
    this.#isConnected = false;
    this.#client = undefined;
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#socket?.destroy();
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => {
      this.#connecting = this.#connect();
    }, RECONNECT_PAUSE_MS);
  }

  /** A connection that died in silence is found out by asking. */
  #ping(): void {
    if (!this.#isConnected || this.#isFlushing) return;
    this.#client?.query('SELECT 1').catch((error: unknown) => this.#lost(error));
  }

  #receive(channel: string, payload: string): void {
    const opened = this.#frames.open(channel, payload);
    if (opened === undefined) return;
    if (opened.isGap) this.#gap();
    for (const message of opened.messages)
      for (const listener of this.#messageListeners) listener(opened.from, message);
  }

  #gap(): void {
    for (const listener of this.#gapListeners) listener();
  }
}
