/**
 * WebSocket `GET /api/v1/stream`: lets readers in, and ties their sockets to the fan-out (docs/spec.md, Live stream).
 */

import { isOrgName } from '../../core/base/ids.ts';
import { fail, ok, type Result } from '../../core/base/result.ts';
import { type Fault, invalid } from '../../core/fault.ts';
import { refuseWithout } from '../../core/identity/access.ts';
import { type Principal, seesOrg } from '../../core/identity/roles.ts';
import { EVENT_KINDS, type EventKind, type GatewayEvent, type Interest } from '../../ports/events.ts';
import type { Authenticated } from '../../ports/use-case.ts';
import type { Link } from '../../use-cases/use-cases.ts';
import { corsHeaders, type Own } from '../engine/access.ts';
import type { AddressOf } from '../engine/client-address.ts';
import type { DoorState } from '../engine/door-state.ts';
import type { Engine, HandshakeAnswer, RequestHead } from '../engine/engine.ts';
import { Exchange } from '../engine/exchange.ts';
import { GuardedHead } from '../engine/guarded-head.ts';
import { problemOf } from '../engine/reply.ts';
import type { QueryName } from '../engine/route.ts';
import { bearerOf } from '../rpc/bearer.ts';
import { refuseRepeated, refuseUnknown } from '../shared/input.ts';
import { overLimitOfStranger } from '../shared/over-limit.ts';
import type { ReaderInterest } from './channel.ts';
import { FanOut } from './fan-out.ts';
import { CLOSE, type Reader } from './reader.ts';

// Decides who may open a stream and what it shows (docs/spec.md, Live stream).

export type StreamQuery = {
  readonly orgId: string | undefined;
  readonly kinds: ReadonlySet<EventKind> | undefined;
  readonly snapshot: boolean;
  readonly lineage: boolean;
};

export const STREAM_QUERY: readonly QueryName[] = ['org_id', 'types', 'snapshot', 'lineage', 'ticket'];

/** Fault: `invalid_argument`. */
export function readStreamQuery(query: URLSearchParams): Result<StreamQuery, Fault> {
  const misspelt = refuseUnknown(query, STREAM_QUERY) ?? refuseRepeated(query, STREAM_QUERY);
  if (misspelt !== undefined) return misspelt;
  // an empty one is refused below: a client that meant an org must not see all
  const orgId = query.get('org_id') ?? undefined;
  if (orgId !== undefined && !isOrgName(orgId)) return invalid('org_id', 'is not a valid org name');
  const snapshot = readFlag(query, 'snapshot');
  if (!snapshot.ok) return snapshot;
  const lineage = readFlag(query, 'lineage');
  if (!lineage.ok) return lineage;
  const words = (query.get('types') ?? '')
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');
  const unknown = words.find((word) => !isEventKind(word));
  if (unknown !== undefined)
    return invalid('types', `${JSON.stringify(unknown)} is not one of ${EVENT_KINDS.join(', ')}`);
  return ok({
    orgId,
    kinds: words.length === 0 ? undefined : new Set(words.filter(isEventKind)),
    snapshot: snapshot.value,
    lineage: lineage.value,
  });
}

/** Not given: false. */
function readFlag(query: URLSearchParams, name: 'snapshot' | 'lineage'): Result<boolean, Fault> {
  const word = query.get(name) || 'false';
  return word === 'true' || word === 'false' ? ok(word === 'true') : invalid(name, 'must be true or false');
}

/**
 * Narrows a principal's request to what it may see. A credential that is bound to an org sees that org alone; `account`
 * events name people, so they are for administrators.
 */
export function interestOf(
  principal: Principal,
  { orgId, kinds, lineage }: StreamQuery,
): Result<ReaderInterest, Fault> {
  const noReader = refuseWithout('read', principal);
  if (noReader !== undefined) return noReader;
  if (orgId !== undefined && !seesOrg(principal, orgId)) return fail({ kind: 'org_forbidden', orgId });
  const noAdmin = refuseWithout('admin', principal);
  if (kinds?.has('account') === true && noAdmin !== undefined) return noAdmin;
  return ok({
    orgId: orgId ?? principal.orgId,
    kinds: kinds ?? (noAdmin === undefined ? ALL_KINDS : KINDS_FOR_READERS),
    lineage,
  });
}

const isEventKind = (word: string): word is EventKind => (EVENT_KINDS as readonly string[]).includes(word);
const ALL_KINDS: ReadonlySet<EventKind> = new Set(EVENT_KINDS);
const KINDS_FOR_READERS: ReadonlySet<EventKind> = new Set(EVENT_KINDS.filter((kind) => kind !== 'account'));

const STREAM_PATH = '/api/v1/stream';

export type StreamOptions = {
  readonly door: DoorState;
  readonly link: Link;
  /** Tells the main thread whose events this thread has readers for. It must arrive before any later request. */
  readonly sendInterest: (interest: Interest) => void;
  readonly authenticate: (bearer: string, address?: string) => Promise<Result<Authenticated, Fault>>;
  /** Origins whose pages may open streams, beside the gateway's own. */
  readonly own: Own;
  readonly maxStreams: number;
  /** The time by which credentials end. */
  readonly nowMs: () => number;
  readonly addressOf?: AddressOf | undefined;
  /** Unlike that of any other I/O thread and any other run. */
  readonly name: string;
  readonly onError: (error: unknown, doing: string) => void;
};

type Data = { readonly reader: Reader };

/** A client that sends more in one message is disconnected: it has nothing to say, but some say "ping". */
const MAX_HEARD_BYTES = 1024;
/** Never reached by the fan-out, which looks before it sends. */
const MAX_UNSENT_BYTES = 1024 * 1024;
/** How long a revocation is remembered, for readers whose credential was being checked when it arrived. */
const REVOCATION_KEPT_MS = 60_000;

/** Copied from a request, which is only valid within its handler. */
type Head = {
  readonly query: URLSearchParams;
  readonly bearer: string | undefined;
  readonly remoteAddress: string;
};

export class Stream {
  readonly #options: StreamOptions;
  readonly #fanOut: FanOut;
  readonly #revokedAtMs = new Map<string, number>();
  #isClosed = false;

  constructor(engine: Engine, options: StreamOptions) {
    this.#options = options;
    this.#fanOut = new FanOut({
      maxReaders: options.maxStreams,
      onInterest: options.sendInterest,
      listOps: async (request) => (await options.link.ask({ type: 'list-ops', ...request })).reply,
      onError: (error) => options.onError(error, 'reading a snapshot'),
      nowMs: options.nowMs,
      name: options.name,
      home: options.link.home,
    });
    const onDefect = (error: unknown): void => options.onError(error, 'opening a stream');
    engine.serveStreams<Data>(STREAM_PATH, {
      maxMessageBytes: 16 * MAX_HEARD_BYTES,
      maxUnsentBytes: MAX_UNSENT_BYTES,
      ask: (answer, request) => {
        const exchange = new Exchange(answer, options.door, onDefect);
        exchange.guard(() => this.#begin(exchange, answer, request));
      },
      opened: (socket, { reader }) => this.#guard(reader, () => this.#fanOut.open(reader, socket)),
      drained: ({ reader }) => this.#guard(reader, () => this.#fanOut.drained(reader)),
      heard: ({ reader }, bytes) =>
        this.#guard(reader, () => {
          if (bytes > MAX_HEARD_BYTES) reader.close(CLOSE.tooLong);
          else this.#fanOut.heard(reader);
        }),
      closed: ({ reader }) => this.#guard(reader, () => this.#fanOut.leave(reader)),
    });
  }

  /** Runs what the engine calls, to which nothing must be thrown. A defect ends the stream that it befell. */
  #guard(reader: Reader, step: () => void): void {
    try {
      step();
    } catch (error) {
      this.#options.onError(error, 'a stream');
      reader.close(CLOSE.defect);
    }
  }

  get size(): number {
    return this.#fanOut.size;
  }
  get dropped(): number {
    return this.#fanOut.dropped;
  }

  publish(events: readonly GatewayEvent[]): void {
    this.#fanOut.publish(events);
  }

  /** Reports events lost from other gateways: nobody knows for certain whose they were. */
  reportLost(count: number): void {
    this.#fanOut.reportLost(count);
  }

  /** An API key or an account was revoked: its streams are closed, also those that are being opened. */
  revokeSubject(subject: string): void {
    const nowMs = performance.now();
    for (const [known, atMs] of this.#revokedAtMs) {
      if (nowMs - atMs < REVOCATION_KEPT_MS) break;
      this.#revokedAtMs.delete(known);
    }
    this.#revokedAtMs.delete(subject);
    this.#revokedAtMs.set(subject, nowMs);
    this.#fanOut.closeSubject(subject);
  }

  /** Closes every reader with a close code, and admits no more. */
  close(): void {
    this.#isClosed = true;
    this.#fanOut.closeAll(CLOSE.goingAway);
  }

  #begin(exchange: Exchange, answer: HandshakeAnswer<Data>, request: RequestHead): void {
    const { addressOf, own } = this.#options;
    const head = new GuardedHead(request, exchange, addressOf);
    if (!head.read(request)) return;
    const refuse = (fault: Fault): void =>
      exchange.send(problemOf(fault), {
        headers: [['Cache-Control', 'no-store'], ...corsHeaders(own.origins, head.origin)],
      });
    const refusal = head.refusal(own, { origins: true, hosts: true });
    if (refusal !== undefined) return refuse(refusal);
    this.#admit(headOf(head))
      .then((reader) => {
        if (!reader.ok) return refuse(reader.fault);
        if (exchange.isOver) return this.#fanOut.leave(reader.value);
        // Meanwhile the credential may have ended, or the shutdown begun.
        if (reader.value.isOver || this.#isClosed) {
          this.#fanOut.leave(reader.value);
          return refuse(this.#isClosed ? SHUTTING_DOWN : REVOKED);
        }
        exchange.guard(() => {
          if (exchange.release()) answer.upgrade({ reader: reader.value });
        });
      })
      .catch((error: unknown) => {
        this.#options.onError(error, 'opening a stream');
        refuse({ kind: 'internal' });
      });
  }

  async #admit(head: Head): Promise<Result<Reader, Fault>> {
    const sinceMs = performance.now();
    const known = await this.#identify(head);
    if (!known.ok) return (await overLimitOfStranger(this.#options.link, head.remoteAddress)) ?? known;
    const { subject } = known.value.principal;
    if ((this.#revokedAtMs.get(subject) ?? -1) >= sinceMs) return fail(REVOKED);
    const query = readStreamQuery(head.query);
    if (!query.ok) return query;
    return this.#seat(known.value, query.value);
  }

  async #identify({ query, bearer, remoteAddress }: Head): Promise<Result<Authenticated, Fault>> {
    const ticket = query.get('ticket');
    if (ticket !== null) return this.#options.link.call('redeemTicket', { ticket });
    return bearer === undefined ? NO_CREDENTIAL : this.#options.authenticate(bearer, remoteAddress);
  }

  async #seat({ principal, expiresAtMs }: Authenticated, query: StreamQuery): Promise<Result<Reader, Fault>> {
    const interest = interestOf(principal, query);
    if (!interest.ok) return interest;
    const reader = this.#fanOut.reserve({
      principal,
      expiresAtMs,
      interest: interest.value,
      wantsSnapshot: query.snapshot,
    });
    if (!reader.ok) return reader;
    // Its answer also confirms that the main thread knows of the interest: later events will be delivered.
    const permit = await this.#options.link.call('takePermit', { limit: 'credential', key: principal.subject });
    if (permit.ok) return ok(reader.value);
    this.#fanOut.leave(reader.value);
    return permit;
  }
}

const headOf = ({ address, authorization, query }: GuardedHead): Head => ({
  query: new URLSearchParams(query),
  bearer: bearerOf(authorization),
  remoteAddress: address,
});

const REVOKED: Fault = { kind: 'unauthenticated', detail: 'the credential was revoked' };
const SHUTTING_DOWN: Fault = { kind: 'shutting_down', retryAfterSecs: 1 };
const NO_CREDENTIAL = fail({
  kind: 'unauthenticated',
  detail: 'no credential presented; send Authorization: Bearer …, or ?ticket= from POST /api/v1/auth/ws-ticket',
} as const);
