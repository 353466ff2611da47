/**
 * Calls of the gateway's Connect methods, and of what only its API has, over kept connections, each answered, refused
 * or given up within its time.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type AgentIdentity, agentKeyOf } from '../core/base/ids.ts';
import { type Mapping, mappingIn } from '../core/base/mapping.ts';
import { codeOf } from '../core/base/text.ts';
import type { Answer } from './answer.ts';
import { Connection, type Gateway, type HttpCall } from './connection.ts';
import { unreachableText } from './faults.ts';

/**
 * The agent in whose name the gateway is asked, and the credential: the agent's own token, or an API key or access
 * token.
 */
export type Credential = {
  readonly agent: AgentIdentity;
  readonly secret: string;
  readonly kind: 'token' | 'bearer';
};

export type Reply =
  | { readonly kind: 'answer'; readonly body: Mapping }
  /** `code` is one of Connect's, or of the API's. */
  | { readonly kind: 'refused'; readonly code: string; readonly reason: string }
  | { readonly kind: 'unreachable'; readonly reason: string };

export type CallOptions = {
  readonly bearer?: string;
  /** For which agent the bearer speaks, where no body says it. */
  readonly agent?: AgentIdentity;
  readonly timeoutMs?: number;
  /** After which the gateway itself answers that there is nothing yet. */
  readonly deadlineMs?: number;
};

const TIMEOUT_MS = 5_000;
/** A gateway that restarts is not noticed: what could not be sent is tried again for this long. */
const OUTAGE_MS = 1_000;
const RETRY_MS = 100;
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

/** Members that only newer gateways know. An older one refuses them by name, and is asked without. */
const OPTIONAL_MEMBERS = ['supportedObligations', 'outcome', 'error'];

/** A Connect method takes a body; what is only read has none. */
type Call = { readonly path: string; readonly body?: Mapping; readonly options: CallOptions };

export class GatewayCalls {
  readonly url: string;
  readonly #connection: Connection;
  readonly #unknown = new Set<string>();

  constructor(gateway: Gateway) {
    this.url = gateway.apiUrl;
    this.#connection = new Connection(gateway);
  }

  /** A Connect method. Never rejects. */
  post(method: string, body: Mapping, options: CallOptions = {}): Promise<Reply> {
    return this.#call({ path: `/svc.governance.v1.${method}`, body, options });
  }

  /** Calls the API at a path, such as `api/v1/agents/self`. Never rejects. */
  get(path: string, options: CallOptions): Promise<Reply> {
    return this.#call({ path: `/${path}`, options });
  }

  /** Hands something over to the API at a path. Never rejects. */
  send(path: string, body: Mapping, options: CallOptions): Promise<Reply> {
    return this.#call({ path: `/${path}`, body, options });
  }

  async #call(call: Call): Promise<Reply> {
    const { options } = call;
    const endMs = performance.now() + (options.timeoutMs ?? TIMEOUT_MS);
    const retryUntilMs = performance.now() + OUTAGE_MS;
    for (let withouts = 0; ; ) {
      const tried = await this.#try(call, endMs);
      if (tried.kind === 'again' && tried.afterMs <= OUTAGE_MS && performance.now() < retryUntilMs)
        await sleep(tried.afterMs);
      else if (tried.kind === 'again') return { kind: 'unreachable', reason: tried.reason };
      else if (tried.kind === 'without' && withouts < OPTIONAL_MEMBERS.length) withouts += 1;
      else if (tried.kind === 'without') return { kind: 'refused', code: 'invalid_argument', reason: tried.reason };
      else return tried;
    }
  }

  close(): void {
    this.#connection.close();
  }

  async #try(call: Call, endMs: number) {
    let answered: Answer;
    try {
      const within = { withinMs: endMs - performance.now(), maxBytes: MAX_ANSWER_BYTES };
      answered = await this.#connection.ask(this.#httpCallOf(call), within);
    } catch (error) {
      const reason = unreachableText(this.url, error);
      // All that is sent may be sent again: the gateway knows an operation by its id.
      return isPassing(error)
        ? ({ kind: 'again', reason, afterMs: RETRY_MS } as const)
        : ({ kind: 'unreachable', reason } as const);
    }
    const { status, text, headers } = answered;
    const read = mappingIn(text);
    if (status === 200 && read !== undefined) return { kind: 'answer', body: read } as const;
    if (typeof read?.code !== 'string') {
      const reason = `${this.url} answered HTTP ${status}, not as a gateway does; check the address`;
      return { kind: 'unreachable', reason } as const;
    }
    const said = read.message ?? read.detail;
    const reason = typeof said === 'string' ? said : read.code;
    if (read.code === 'invalid_argument' && this.#isUnknown(reason)) return { kind: 'without', reason } as const;
    if (status === 429 || status === 503)
      return {
        kind: 'again',
        reason,
        afterMs: Math.max(RETRY_MS, (Number(headers['retry-after'] ?? 0) || 0) * 1_000),
      } as const;
    return { kind: 'refused', code: read.code, reason } as const;
  }

  #known(body: Mapping): Mapping {
    if (this.#unknown.size === 0) return body;
    const known = Object.fromEntries(Object.entries(body).filter(([name]) => !this.#unknown.has(name)));
    return Array.isArray(known.requests)
      ? { ...known, requests: known.requests.map((request: Mapping) => this.#known(request)) }
      : known;
  }

  /**
   * Notes the member that the gateway does not know, if it is one that it may do without. Calls that were sent at the
   * same time learn it each for itself.
   */
  #isUnknown(reason: string): boolean {
    const named = /(\w+):? is not a field of/.exec(reason)?.[1];
    const member = OPTIONAL_MEMBERS.find((name) => name === named);
    if (member !== undefined) this.#unknown.add(member);
    return member !== undefined;
  }

  #httpCallOf({ path, body, options: { bearer, agent, deadlineMs } }: Call): HttpCall {
    return {
      method: body === undefined ? 'GET' : 'POST',
      path,
      content: body === undefined ? undefined : JSON.stringify(this.#known(body)),
      headers: {
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
        // Headers have bytes, and names may have any letters.
        ...(agent === undefined ? {} : { 'x-svc-agent': Buffer.from(agentKeyOf(agent)).toString('latin1') }),
        ...(deadlineMs === undefined ? {} : { 'connect-timeout-ms': String(Math.ceil(deadlineMs)) }),
      },
    };
  }
}

const isPassing = (error: unknown): boolean => ['ECONNREFUSED', 'ECONNRESET', 'EPIPE'].includes(codeOf(error) ?? '');
