/** The sessions of the proxy: each belongs to the credential that opened it, and none is kept forever. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { isMapping } from '../../core/base/mapping.ts';
import { messageIn } from '../json-rpc.ts';
import { Session, type SessionOptions } from '../session.ts';
import type { Lease } from './signal-pool.ts';

const MAX_SESSIONS = 1_000;
/** Servers that are started, each of them a process of one session: of one credential, and of all. */
const MAX_PROCESSES_OF_CREDENTIAL = 16;
const MAX_PROCESSES = 256;
/** Requests and streams of one session that are open at once. */
const MAX_OPEN = 64;
const IDLE_MS = 30 * 60_000;
const SWEEP_MS = 15_000;
/** A client that has not read for so many sweeps keeps what it does not read in our memory. */
const MAX_STALLED_SWEEPS = 4;

/** Whose session it is. */
type Place = {
  readonly path: string;
  readonly binding: string;
  /** The digest of the credential, whichever agents it speaks for. */
  readonly credential: string;
  /** How many servers are started for it. */
  readonly processes: number;
};

export type SessionLimits = {
  readonly sessions: number;
  readonly processes: number;
  readonly processesOfCredential: number;
};

type Kept = {
  readonly place: Place;
  readonly session: Session;
  readonly transport: StreamableHTTPServerTransport;
  readonly lease: Lease;
  readonly open: Map<ServerResponse, number>;
  usedAtMs: number;
};

export type OpenOptions = Omit<SessionOptions, 'signals' | 'toAgent' | 'onServerClosed'> & { readonly lease: Lease };

export class Sessions {
  readonly #kept = new Map<string, Kept>();
  /** Places of sessions, those being opened or ended included: their servers run. */
  readonly #places = new Set<Place>();
  readonly #log: (line: string) => void;
  readonly #limits: SessionLimits;
  readonly #sweep: NodeJS.Timeout;

  constructor(log: (line: string) => void, limits: Partial<SessionLimits> = {}) {
    this.#log = log;
    this.#limits = {
      sessions: MAX_SESSIONS,
      processes: MAX_PROCESSES,
      processesOfCredential: MAX_PROCESSES_OF_CREDENTIAL,
      ...limits,
    };
    this.#sweep = setInterval(() => this.#tidy(), SWEEP_MS).unref();
  }

  /** Why there is no room for another session; undefined where there is. A credential gets half of all places. */
  crowding({ credential, processes }: Pick<Place, 'credential' | 'processes'>): string | undefined {
    const { sessions, processes: most, processesOfCredential } = this.#limits;
    const places = [...this.#places];
    const own = places.filter((place) => place.credential === credential);
    if (places.length >= sessions || own.length >= sessions / 2) return 'there are too many sessions';
    if (processes === 0) return undefined;
    // The first session of a credential may start more: it could never be opened otherwise.
    const ownCount = processesIn(own);
    if (ownCount > 0 && ownCount + processes > processesOfCredential)
      return `the sessions of this credential have started ${ownCount} servers, and may have ${processesOfCredential}; end one that is not used`;
    const count = processesIn(places);
    return count > 0 && count + processes > most
      ? `all sessions have started ${count} servers, and may have ${most}`
      : undefined;
  }

  /** Another's session is as unknown as one that never was. */
  find(id: string, path: string, binding: string): Kept | undefined {
    const kept = this.#kept.get(id);
    return kept?.place.path === path && kept.place.binding === binding ? kept : undefined;
  }

  /** Opens a session with its first request, which initializes it. */
  async open(
    { lease, ...options }: OpenOptions,
    place: Place,
    request: IncomingMessage,
    response: ServerResponse,
    body: unknown,
  ): Promise<void> {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void this.#kept.set(id, kept),
      onsessionclosed: (id) => this.#close(id),
    });
    const session = new Session({
      ...options,
      signals: lease.signals,
      toAgent: (message, related) => {
        transport
          .send(message as JSONRPCMessage, related === undefined ? {} : { relatedRequestId: related })
          // Its client has gone; what it was to hear is over with it.
          .catch(() => {});
      },
      onServerClosed: (name, why) => this.#log(`the MCP server ${name} has ended: ${why}`),
    });
    const kept: Kept = { place, session, transport, lease, open: new Map(), usedAtMs: Date.now() };
    transport.onmessage = (message) => {
      const known = messageIn(message);
      if (known !== undefined) session.receive(known);
    };
    this.#places.add(place);
    try {
      await transport.start();
      await this.serve(kept, request, response, body);
    } finally {
      // A first request that the transport refuses opens nothing.
      if (transport.sessionId === undefined) await this.#end(kept);
    }
  }

  async serve(kept: Kept, request: IncomingMessage, response: ServerResponse, body: unknown): Promise<void> {
    if (kept.open.size >= MAX_OPEN) {
      response.writeHead(429, { 'retry-after': '1' }).end();
      return;
    }
    kept.usedAtMs = Date.now();
    kept.open.set(response, 0);
    response.once('close', () => {
      kept.open.delete(response);
      kept.usedAtMs = Date.now();
    });
    // The transport refuses all of a body with one message that is none.
    const bad = (Array.isArray(body) ? body : [body]).find((one) => isMapping(one) && messageIn(one) === undefined);
    if (typeof bad?.method === 'string')
      kept.session.noteRefused(bad.method, undefined, 'it is not a JSON-RPC message');
    await kept.transport.handleRequest(request, response, body);
  }

  async closeAll(): Promise<void> {
    clearInterval(this.#sweep);
    await Promise.all([...this.#kept.keys()].map((id) => this.#close(id)));
  }

  async #close(id: string): Promise<void> {
    const kept = this.#kept.get(id);
    if (kept === undefined) return;
    this.#kept.delete(id);
    await this.#end(kept);
  }

  async #end({ place, session, transport, lease }: Kept): Promise<void> {
    try {
      await session.close();
      await transport.close();
      await lease.release();
    } finally {
      this.#places.delete(place);
    }
  }

  #tidy(): void {
    const now = Date.now();
    for (const [id, { open, session, usedAtMs }] of this.#kept) {
      if (open.size === 0 && session.runningCount === 0 && now - usedAtMs > IDLE_MS) void this.#close(id);
      for (const [response, sweeps] of open) {
        if (!response.writableNeedDrain) open.set(response, 0);
        else if (sweeps >= MAX_STALLED_SWEEPS) response.destroy();
        else open.set(response, sweeps + 1);
      }
    }
  }
}

const processesIn = (places: readonly Place[]): number => places.reduce((sum, { processes }) => sum + processes, 0);
