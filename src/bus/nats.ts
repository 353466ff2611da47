import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
// NATS's own client, of the line that runs on Node.js 20: what follows it, @nats-io/*, asks for 22.
import type { ConnectionOptions, NatsConnection } from 'nats';
import { type Backoff, backoffMs, spreadMs } from '../core/base/backoff.ts';
import { codeOf, messageOf } from '../core/base/text.ts';
import type { Bus, ClusterMessage, RunId } from '../ports/cluster.ts';
import { within } from '../system/clock.ts';
import {
  FRAME_BYTES,
  Frames,
  type FramesOptions,
  MAX_MESSAGE_BYTES,
  MAX_WAITING_BYTES,
  type Outgoing,
} from './frames.ts';
import { NotNats, readGreeting } from './nats-greeting.ts';
import type { NatsServer } from './nats-servers.ts';

export type NatsBusOptions = FramesOptions & {
  readonly servers: readonly NatsServer[];
  /** The certificate authorities of the servers; undefined: those that Node.js knows. */
  readonly caFile: string | undefined;
  /** A certificate (PEM) for servers that want to see one, and its key. */
  readonly certificateFile?: string | undefined;
  readonly keyFile?: string | undefined;
  /** The file that `nsc` calls creds; undefined: the URLs carry the credentials. */
  readonly credentialsFile: string | undefined;
  /** Shown in the lists of the server. */
  readonly name: string;
  readonly log: {
    info(message: string, fields?: object): void;
    warn(message: string, fields?: object): void;
  };
};

/** The settings are wrong: no attempt will be better until somebody changes something. */
export class BusRefused extends Error {}

const CONNECT_TIMEOUT_MS = 5_000;
const PING_EVERY_MS = 1_000;
/** For which the server may keep silent. */
const ANSWER_WITHIN_MS = 3_000;
const DRAIN_WITHIN_MS = 1_000;
const RETRY: Backoff = { firstMs: 250, longestMs: 5_000 };
/** Limits the messages of a frame, if the server takes as much. */
const MAX_TEXT_BYTES = 128 * 1024;
const LEAST_PAYLOAD = 8 * 1024;

const AUTH_CODES = /^(?:AUTHORIZATION_VIOLATION|AUTHENTICATION_EXPIRED|ACCOUNT_EXPIRED|BAD_CREDS|BAD_AUTHENTICATION)$/;
/** The server wants to see a certificate, or does not trust the one that it has seen. */
const ASKED_CODES =
  /ALERT_(?:BAD_CERTIFICATE|CERTIFICATE_REQUIRED|UNKNOWN_CA|UNSUPPORTED_CERTIFICATE|CERTIFICATE_EXPIRED)$/;
const TLS_CODES =
  /^(?:TLS$|EPROTO$|ERR_TLS|ERR_SSL|ERR_OSSL|CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH|INVALID_)/;

/**
 * The bus over NATS, its core only: nothing is stored there. Each attempt is a connection anew, on which nothing waits
 * that was sent before: whoever missed it is told by a gap, and reads the tables.
 */
export class NatsBus implements Bus {
  readonly #options: NatsBusOptions;
  readonly #messageListeners: ((from: RunId, message: ClusterMessage) => void)[] = [];
  readonly #gapListeners: (() => void)[] = [];
  readonly #frames: Frames;
  readonly #all: string;
  readonly #end = new AbortController();
  #connection: NatsConnection | undefined;
  #maxTextBytes = MAX_TEXT_BYTES;
  #waiting: Outgoing[] = [];
  /** Bytes of messages that wait, or that the server has not confirmed. */
  #heldBytes = 0;
  #isConfirming = false;
  #isDue = false;
  #pings: NodeJS.Timeout | undefined;
  #retry: NodeJS.Timeout | undefined;
  #tries = 0;
  /** The server that is tried first: gateways are spread, and one that has lost its server goes to the next. */
  #next = Math.floor(Math.random() * 1_000);
  #complained = '';

  constructor(options: NatsBusOptions) {
    this.#options = options;
    this.#frames = new Frames(options);
    this.#all = `${this.#prefix}.all`;
  }

  get isConnected(): boolean {
    return this.#connection !== undefined;
  }

  onMessage(listener: (from: RunId, message: ClusterMessage) => void): void {
    this.#messageListeners.push(listener);
  }

  onGap(listener: () => void): void {
    this.#gapListeners.push(listener);
  }

  /**
   * Resolves when each server was tried once; where none can be reached, it goes on trying by itself. Rejects with
   * {@link BusRefused} where that would not help.
   */
  async start(): Promise<void> {
    this.#pings = setInterval(() => this.#ping(), PING_EVERY_MS);
    const trouble = await this.#tryAll();
    if (trouble instanceof BusRefused) throw trouble;
    if (trouble !== undefined) this.#tryLater(trouble);
  }

  /** Earlier messages still leave, if the server takes them within a second. */
  async close(): Promise<void> {
    this.#end.abort();
    clearInterval(this.#pings);
    clearTimeout(this.#retry);
    const connection = this.#connection;
    if (connection === undefined) return;
    this.#push(connection);
    this.#connection = undefined;
    await within(DRAIN_WITHIN_MS, connection.drain()).catch(() => undefined); // what is lost is read from the tables
    await connection.close();
  }

  send(to: RunId | 'all', message: ClusterMessage): boolean {
    if (this.#connection === undefined) return false;
    const text = JSON.stringify(message);
    const bytes = Buffer.byteLength(text);
    if (bytes > MAX_MESSAGE_BYTES || this.#heldBytes + bytes > MAX_WAITING_BYTES) return false;
    this.#heldBytes += bytes;
    this.#waiting.push({ channel: to === 'all' ? this.#all : this.#inboxOf(to), text });
    if (!this.#isDue) {
      this.#isDue = true;
      setImmediate(() => {
        this.#isDue = false;
        this.#ping();
      });
    }
    return true;
  }

  #ping(): void {
    if (this.#connection !== undefined) this.#push(this.#connection);
  }

  /** Clusters on the same servers do not hear one another; that they could not read it, the signatures see to. */
  get #prefix(): string {
    return `svc.${createHash('sha256').update(this.#options.secret).digest('hex').slice(0, 12)}`;
  }

  #inboxOf(run: RunId): string {
    return `${this.#prefix}.run.${run}`;
  }

  /**
   * Sends what waits, and asks whether the server has taken it and is there at all: one that died in silence is found
   * out so.
   */
  #push(connection: NatsConnection): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    try {
      for (const { channel, payload } of this.#frames.pack(waiting, this.#maxTextBytes))
        connection.publish(channel, payload);
    } catch (error) {
      return this.#lost(connection, error);
    }
    if (this.#isConfirming) return;
    this.#isConfirming = true;
    const bytes = this.#heldBytes;
    flushed(connection).then(
      () => {
        if (connection !== this.#connection) return;
        this.#isConfirming = false;
        this.#heldBytes -= bytes;
        if (this.#heldBytes > 0) this.#push(connection);
      },
      (error: unknown) => this.#lost(connection, error),
    );
  }

  /** Undefined once one is connected; else why the last one that was tried is not, or one that refuses. */
  async #tryAll(): Promise<Error | undefined> {
    const { servers } = this.#options;
    let trouble = new Error('there is no server');
    for (let nth = 0; nth < servers.length; nth += 1) {
      const server = servers[this.#next % servers.length]!;
      try {
        return await this.#connect(server);
      } catch (error) {
        this.#next += 1;
        const cause = error instanceof BusRefused ? error : new Error(`${addressOf(server)}: ${messageOf(error)}`);
        if (!(trouble instanceof BusRefused)) trouble = cause;
      }
    }
    return trouble;
  }

  async #connect(server: NatsServer): Promise<undefined> {
    await greetingOf(server, this.#end.signal);
    const { connect } = await import('nats');
    const connection = await connect(await this.#optionsFor(server)).catch((error: unknown) => {
      throw refusalBy(server, error) ?? error;
    });
    try {
      await this.#enter(connection, server);
    } catch (error) {
      await connection.close();
      throw error;
    }
    if (this.#end.signal.aborted) return void (await connection.close());
    this.#connection = connection;
    void connection.closed().then((error) => this.#lost(connection, error ?? new Error('the connection was closed')));
    this.#isBack(server);
    return undefined;
  }

  async #optionsFor({ host, port, isTls, user, password, token }: NatsServer): Promise<ConnectionOptions> {
    const { caFile, certificateFile, credentialsFile, keyFile, name } = this.#options;
    const { credsAuthenticator } = await import('nats');
    const credentials = credentialsFile === undefined ? undefined : await fileIn('CREDENTIALS', credentialsFile);
    const ca = caFile === undefined ? undefined : (await fileIn('CA', caFile)).toString();
    const cert = certificateFile === undefined ? undefined : (await fileIn('CERT', certificateFile)).toString();
    const key = keyFile === undefined ? undefined : (await fileIn('KEY', keyFile)).toString();
    const files = { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) };
    return {
      servers: [`${isIP(host) === 6 ? `[${host}]` : host}:${port}`],
      name,
      ...(user !== undefined && password !== undefined && { user, pass: password }),
      ...(token !== undefined && { token }),
      ...(credentials && { authenticator: credsAuthenticator(credentials) }),
      // The certificate has to be for the name in the settings, which the client forgets without these.
      tls: isTls ? ({ host, ...(isIP(host) === 0 && { servername: host }), ...files } as object) : null,
      resolve: false,
      reconnect: false,
      ignoreClusterUpdates: true,
      noEcho: true,
      timeout: CONNECT_TIMEOUT_MS,
    };
  }

  /**
   * Listens, and sends a first frame to all: what this gateway may not do is known then, and the others hear that they
   * have missed something.
   */
  async #enter(connection: NatsConnection, server: NatsServer): Promise<void> {
    const inbox = this.#inboxOf(this.#options.self);
    const most = connection.info?.max_payload ?? 0;
    if (most < LEAST_PAYLOAD)
      throw new BusRefused(
        `${addressOf(server)} takes ${most} bytes a message; set max_payload there to ${LEAST_PAYLOAD} at least`,
      );
    this.#maxTextBytes = Math.min(MAX_TEXT_BYTES, most - FRAME_BYTES);
    let forbidden: string | undefined;
    void (async () => {
      for await (const { permissionContext: found } of connection.status()) {
        if (found === undefined) continue;
        forbidden = `${found.operation} to ${found.subject}`;
        if (connection === this.#connection) this.#lost(connection, forbiddenBy(server, forbidden));
      }
    })();
    for (const subject of [this.#all, inbox])
      connection.subscribe(subject, {
        callback: (error, message) => {
          if (error === null) this.#receive(subject, message.string());
        },
      });
    for (const subject of [this.#all, inbox]) connection.publish(subject, this.#frames.empty(subject));
    await flushed(connection);
    await nextTurn(); // what was refused before comes to the loop above a little later
    if (forbidden !== undefined) throw forbiddenBy(server, forbidden);
  }

  #isBack(server: NatsServer): void {
    this.#tries = 0;
    this.#heldBytes = 0;
    this.#waiting = [];
    this.#isConfirming = false;
    if (this.#complained !== '')
      this.#options.log.info('the bus of the cluster is connected again', { server: addressOf(server) });
    this.#complained = '';
    this.#frames.forgiveGaps();
    this.#gap();
  }

  #lost(connection: NatsConnection, error: unknown): void {
    if (connection !== this.#connection) return;
    this.#connection = undefined;
    void connection.close();
    this.#next += 1;
    this.#tryLater(error);
  }

  #tryLater(error: unknown): void {
    if (this.#end.signal.aborted) return;
    const cause = messageOf(error);
    // Once for each cause: it may be away for hours.
    if (cause !== this.#complained) this.#options.log.warn('the bus of the cluster is cut off', { cause });
    this.#complained = cause;
    this.#tries += 1;
    this.#retry = setTimeout(
      async () => {
        const trouble = await this.#tryAll();
        if (trouble !== undefined) this.#tryLater(trouble);
      },
      spreadMs(backoffMs(this.#tries, RETRY), Math.random()),
    );
  }

  #receive(subject: string, payload: string): void {
    try {
      const opened = this.#frames.open(subject, payload);
      if (opened === undefined) return;
      if (opened.isGap) this.#gap();
      for (const message of opened.messages)
        for (const listener of this.#messageListeners) listener(opened.from, message);
    } catch (error) {
      // The client would stop reading because of it, and say nothing.
      setImmediate(() => {
        throw error;
      });
    }
  }

  #gap(): void {
    for (const listener of this.#gapListeners) listener();
  }
}

const addressOf = ({ host, port }: NatsServer): string => `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;

async function greetingOf(server: NatsServer, signal: AbortSignal): Promise<void> {
  const at = addressOf(server);
  const { isTlsRequired, isTlsOffered } = await readGreeting(server, signal).catch((error: unknown) => {
    throw error instanceof NotNats ? new BusRefused(`the server at ${at} is not NATS; correct SVC_BUS_URL`) : error;
  });
  if (isTlsRequired && !server.isTls)
    throw new BusRefused(`${at} takes encrypted connections only; write tls:// in place of nats:// in SVC_BUS_URL`);
  if (server.isTls && !isTlsOffered)
    throw new BusRefused(`${at} offers no encryption; configure tls there, or write nats:// in SVC_BUS_URL`);
}

/** Undefined for what may pass. */
function refusalBy(server: NatsServer, error: unknown): BusRefused | undefined {
  const code = codeOf(error) ?? '';
  const why = `${addressOf(server)}: ${messageOf(error)}`;
  if (AUTH_CODES.test(code))
    return new BusRefused(
      `the credentials are refused by ${why}; correct those in SVC_BUS_URL, or in the file of SVC_BUS_CREDENTIALS_FILE`,
    );
  if (ASKED_CODES.test(code))
    return new BusRefused(
      `${addressOf(server)} verifies certificates (${code}); name one that it trusts in SVC_BUS_CERT_FILE, and its key in SVC_BUS_KEY_FILE`,
    );
  if (TLS_CODES.test(code))
    return new BusRefused(
      `no encrypted connection to ${why} (${code}); name the authority of its certificate in SVC_BUS_CA_FILE, and in SVC_BUS_URL a host that it is for`,
    );
  return undefined;
}

const forbiddenBy = (server: NatsServer, what: string): BusRefused =>
  new BusRefused(`${addressOf(server)} does not permit a ${what}; allow the user to publish and subscribe to svc.>`);

async function fileIn(setting: 'CA' | 'CERT' | 'KEY' | 'CREDENTIALS', path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    throw new BusRefused(`cannot read the file of SVC_BUS_${setting}_FILE: ${messageOf(error)}`);
  }
}

/** Once the server has taken all that was sent. Rejects where it does not say so in time. */
async function flushed(connection: NatsConnection): Promise<void> {
  const isTaken = await within(
    ANSWER_WITHIN_MS,
    connection.flush().then(() => true),
  );
  if (isTaken !== true) throw new Error('no answer in time');
}
