/** The sessions of the proxy: each belongs to the credential that opened it, and none is kept for ever. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { messageIn } from '../json-rpc.ts';
import { Session, type SessionOptions } from '../session.ts';

const MAX_SESSIONS = 1_000;
/** Requests and streams of one session that are open at once. */
const MAX_OPEN = 64;
const IDLE_MS = 30 * 60_000;
const SWEEP_MS = 15_000;
/** A client that has not read for so many sweeps keeps what it does not read in our memory. */
const MAX_STALLED_SWEEPS = 4;

type Kept = {
  readonly session: Session;
  readonly transport: StreamableHTTPServerTransport;
  readonly path: string;
  readonly binding: string;
  readonly open: Map<ServerResponse, number>;
  usedAtMs: number;
};

export type OpenOptions = Omit<SessionOptions, 'toAgent' | 'onServerClosed'>;

export class Sessions {
  readonly #kept = new Map<string, Kept>();
  #opening = 0;
  readonly #log: (line: string) => void;
  readonly #sweep: NodeJS.Timeout;

  constructor(log: (line: string) => void) {
    this.#log = log;
    this.#sweep = setInterval(() => this.#tidy(), SWEEP_MS).unref();
  }

  get isFull(): boolean {
    return this.#kept.size + this.#opening >= MAX_SESSIONS;
  }

  /** Another's session is as unknown as one that never was. */
  find(id: string, path: string, binding: string): Kept | undefined {
    const kept = this.#kept.get(id);
    return kept?.path === path && kept.binding === binding ? kept : undefined;
  }

  /** Opens a session with its first request, which initializes it. */
  async open(
    options: OpenOptions,
    place: Pick<Kept, 'path' | 'binding'>,
    request: IncomingMessage,
    response: ServerResponse,
    body: unknown,
  ): Promise<void> {
    this.#opening += 1;
    try {
      const transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => void this.#kept.set(id, kept),
        onsessionclosed: (id) => this.#close(id),
      });
      const session = new Session({
        ...options,
        toAgent: (message, related) => {
          transport
            .send(message as JSONRPCMessage, related === undefined ? {} : { relatedRequestId: related })
            // Its client has gone; what it was to hear is over with it.
            .catch(() => {});
        },
        onServerClosed: (name, why) => this.#log(`the MCP server ${name} has ended: ${why}`),
      });
      const kept: Kept = { ...place, session, transport, open: new Map(), usedAtMs: Date.now() };
      transport.onmessage = (message) => {
        const known = messageIn(message);
        if (known !== undefined) session.receive(known);
      };
      await transport.start();
      await this.serve(kept, request, response, body);
      // A first request that the transport refuses opens nothing.
      if (transport.sessionId === undefined) await session.close();
    } finally {
      this.#opening -= 1;
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
    await kept.session.close();
    await kept.transport.close();
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
