import { createHmac, timingSafeEqual } from 'node:crypto';
import { Socket } from 'node:net';
import pg from 'pg';
import { isMapping } from '../../../core/base/mapping.ts';
import { messageOf } from '../../../core/base/text.ts';
import type { Bus, ClusterMessage, RunId } from '../../../ports/cluster.ts';

export type PostgresBusOptions = {
  /** Of a connection that no pooler shares: `LISTEN` belongs to a session. */
  readonly url: string;
  readonly self: RunId;
  /** All gateways have the same one. A message that was not made with it is dropped. */
  readonly secret: string;
  readonly log: {
    info(message: string, fields?: object): void;
    warn(message: string, fields?: object): void;
  };
};

const ALL = 'svc_cluster';
const inboxOf = (run: RunId): string => `svc_run_${run}`;

/** PostgreSQL takes less than 8,000 bytes; the rest of a payload is its signature and its frame. */
const MAX_TEXT_BYTES = 7_600;
/** A message is cut into parts. Larger ones are refused. */
const MAX_MESSAGE_BYTES = 2 * 1024 * 1024;
/** What waits while the database is slow. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;
const MAC_LENGTH = 22;
const CONNECT_TIMEOUT_MS = 3_000;
const PING_EVERY_MS = 1_000;
const RECONNECT_PAUSE_MS = 500;
/** With a name, so that the server plans it once per connection: to plan it takes longer than to run it. */
const NOTIFY = { name: 'notify', text: 'SELECT pg_notify(c, p) FROM unnest($1::text[], $2::text[]) AS u (c, p)' };

/**
 * `f`: from which run; `n`: its number on this channel; `m`: messages, or `p`: a part of one, which is the last if `e`.
 */
type Frame = {
  readonly f: RunId;
  readonly n: number;
  readonly m?: readonly ClusterMessage[];
  readonly p?: string;
  readonly e?: boolean;
};

type Received = { last: number; parts: string };

/**
 * The bus over `LISTEN` and `NOTIFY`, on a connection of its own: whoever notifies waits for a lock of the whole
 * server, so nothing else may happen in that transaction. What waits while a batch is under way makes up the next one.
 */
export class PostgresBus implements Bus {
  readonly #options: PostgresBusOptions;
  readonly #messageListeners: ((from: RunId, message: ClusterMessage) => void)[] = [];
  readonly #gapListeners: (() => void)[] = [];
  readonly #sent = new Map<string, number>();
  readonly #received = new Map<string, Received>();
  #waiting: { readonly channel: string; readonly text: string }[] = [];
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
      const frames = this.#framesOf(waiting);
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

  #framesOf(waiting: readonly { readonly channel: string; readonly text: string }[]) {
    const frames: { readonly channel: string; readonly payload: string }[] = [];
    const byChannel = new Map<string, string[]>();
    for (const { channel, text } of waiting) byChannel.set(channel, [...(byChannel.get(channel) ?? []), text]);
    for (const [channel, texts] of byChannel) {
      let group: string[] = [];
      let bytes = 0;
      const end = (): void => {
        if (group.length > 0) frames.push(this.#framed(channel, `"m":[${group.join()}]`));
        group = [];
        bytes = 0;
      };
      for (const text of texts) {
        const length = Buffer.byteLength(text) + 1;
        if (bytes + length > MAX_TEXT_BYTES) end();
        if (length > MAX_TEXT_BYTES) {
          const parts = partsOf(text);
          for (const [at, part] of parts.entries())
            frames.push(this.#framed(channel, `"p":${JSON.stringify(part)},"e":${at === parts.length - 1}`));
          continue;
        }
        group.push(text);
        bytes += length;
      }
      end();
    }
    return frames;
  }

  #framed(channel: string, content: string): { readonly channel: string; readonly payload: string } {
    const number = (this.#sent.get(channel) ?? 0) + 1;
    this.#sent.set(channel, number);
    const frame = `{"f":"${this.#options.self}","n":${number},${content}}`;
    return { channel, payload: this.#macOf(channel, frame) + frame };
  }

  #macOf(channel: string, frame: string): string {
    return createHmac('sha256', this.#options.secret)
      .update(`${channel} ${frame}`)
      .digest('base64url')
      .slice(0, MAC_LENGTH);
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
    this.#received.clear();
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
    const mac = payload.slice(0, MAC_LENGTH);
    const text = payload.slice(MAC_LENGTH);
    const expected = this.#macOf(channel, text);
    if (mac.length !== MAC_LENGTH || !timingSafeEqual(Buffer.from(mac), Buffer.from(expected))) return;
    const frame = JSON.parse(text) as Frame;
    if (frame.f === this.#options.self) return;
    const received = this.#receivedOf(`${channel} ${frame.f}`, frame.n);
    for (const message of frame.m ?? []) this.#deliver(frame.f, message);
    if (frame.p === undefined) return;
    received.parts += frame.p;
    if (frame.e !== true) return;
    const whole = received.parts;
    received.parts = '';
    const message = parsed(whole);
    if (message !== undefined) this.#deliver(frame.f, message);
  }

  #receivedOf(key: string, number: number): Received {
    const known = this.#received.get(key);
    const isNext = known !== undefined && number === known.last + 1;
    const received = known ?? { last: 0, parts: '' };
    received.last = number;
    // The first message received of a run may not be its first: what came before was read with the tables.
    if (known !== undefined && !isNext) {
      received.parts = '';
      this.#gap();
    }
    this.#received.set(key, received);
    return received;
  }

  #deliver(from: RunId, message: ClusterMessage): void {
    for (const listener of this.#messageListeners) listener(from, message);
  }

  #gap(): void {
    for (const listener of this.#gapListeners) listener();
  }
}

/** Cut between characters: what JSON makes of half a surrogate pair would not fit together again. */
function partsOf(text: string): readonly string[] {
  const parts: string[] = [];
  let part = '';
  let bytes = 0;
  for (const character of text) {
    const length = Buffer.byteLength(JSON.stringify(character)) - 2;
    if (bytes + length > MAX_TEXT_BYTES) {
      parts.push(part);
      part = '';
      bytes = 0;
    }
    part += character;
    bytes += length;
  }
  return [...parts, part];
}

/** Undefined for what is left of a message whose beginning was missed. */
function parsed(text: string): ClusterMessage | undefined {
  try {
    const message: unknown = JSON.parse(text);
    return isMapping(message) ? (message as ClusterMessage) : undefined;
  } catch {
    return undefined;
  }
}
