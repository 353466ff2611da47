import { networkOf } from '../../core/base/client-address.ts';
import { agentKeyOf } from '../../core/base/ids.ts';
import { fail, ok, type Result } from '../../core/base/result.ts';
import type { Fault } from '../../core/fault.ts';
import { refuseWithout } from '../../core/identity/access.ts';
import { FairQueue } from '../../fairness/fair-queue.ts';
import { corsHeaders, isPreflight, type Own, preflightReply } from '../engine/access.ts';
import type { AddressOf } from '../engine/client-address.ts';
import type { DoorState } from '../engine/door-state.ts';
import type { Engine, RequestHead } from '../engine/engine.ts';
import { Exchange, type Sending } from '../engine/exchange.ts';
import { type Forbidden, GuardedHead } from '../engine/guarded-head.ts';
import { problemOf } from '../engine/reply.ts';
import type { BodyResult, ConcurrencyLimit, HttpReply, Method, RawRequest, Route } from '../engine/route.ts';
import { parseJson } from '../proto/json.ts';
import { attempt } from '../proto/schema.ts';
import { bearerOf } from '../rpc/bearer.ts';
import { digestOfPresented } from '../rpc/credential-digests.ts';
import type { WirePorts } from '../rpc/ports.ts';
import type { Header } from '../shared/http-answer.ts';
import { refuseRepeated, refuseUnknown } from '../shared/input.ts';
import { overLimit, overLimitOfStranger } from '../shared/over-limit.ts';
import { Router } from './router.ts';

/** In bytes. A larger body is answered with 413 (docs/spec.md, Errors). */
const MAX_BODY_BYTES = 1024 * 1024;
/**
 * Runs one listing at a time: a second one would double how long checks wait for this thread, which spends more time on
 * a page than the main thread.
 */
const LISTINGS = { atOnce: 1, places: 1024 };

export type RouteServerOptions = {
  readonly door: DoorState;
  readonly ports: WirePorts;
  readonly routes: readonly Route[];
  readonly corsOrigins: readonly string[];
  /** Whose pages may change something. */
  readonly own: Own;
  /**
   * The address of a request's client, for the limits of callers without a credential. Default: the peer of the
   * connection.
   */
  readonly addressOf?: AddressOf;
  /** How long a client may take to send a body. */
  readonly bodyTimeoutMs: number;
  readonly onError: (error: unknown, doing: string) => void;
  /**
   * Called when an answer was cut off because it could not go on, such as an export whose credential was revoked
   * meanwhile.
   */
  readonly onCut: (fault: Fault, doing: string) => void;
  /** Called for every request, for the metrics. */
  readonly onRequest?: () => void;
};

/** Adds the whole HTTP API to the engine: every row of the table, and an answer for everything else. */
export function serveRoutes(engine: Engine, options: RouteServerOptions): void {
  const server = new RouteServer(options);
  const onDefect = (error: unknown): void => options.onError(error, 'an HTTP request');
  engine.serve('/*', (answer, request) => {
    options.onRequest?.();
    const exchange = new Exchange(answer, options.door, onDefect);
    exchange.guard(() => server.answer(exchange, request));
  });
}

type PublicRow = Extract<Route, { readonly access: 'public' }>;
type AgentRow = Extract<Route, { readonly access: 'agent' }>;
type ScopedRow = Exclude<Route, PublicRow | AgentRow>;
type Unparsed = Omit<RawRequest, 'body'>;
type Respond = (reply: HttpReply) => void;

/** The requests of one row in progress. None is queued: there are as many slots as may run at once. */
type InProgress = { readonly places: FairQueue; readonly refusal: HttpReply };

const overloaded = (what: string): HttpReply => fail({ kind: 'overloaded', what, retryAfterSecs: 1 });
const inProgressOf = ({ limit, what }: ConcurrencyLimit): InProgress => ({
  places: new FairQueue({ atOnce: limit, places: limit }),
  refusal: overloaded(what),
});

class RouteServer {
  readonly #options: RouteServerOptions;
  readonly #router: Router<Route>;
  /** Requests in progress on routes with a limit of their own. */
  readonly #inProgress: ReadonlyMap<Route, InProgress>;
  /** Requests of queued rows that run or wait. */
  readonly #queue = new FairQueue(LISTINGS);

  constructor(options: RouteServerOptions) {
    this.#options = options;
    this.#router = new Router(options.routes);
    this.#inProgress = new Map(
      options.routes.flatMap((route) => (route.atOnce === undefined ? [] : [[route, inProgressOf(route.atOnce)]])),
    );
  }

  answer(exchange: Exchange, request: RequestHead): void {
    const { addressOf, bodyTimeoutMs, own } = this.#options;
    const { method: verb, path } = request;
    const method = (verb === 'head' ? 'get' : verb) as Method;
    const guarded = new RouteHead(request, exchange, addressOf);
    if (!guarded.read(request)) return;
    const { headers } = guarded;
    const respond = this.#responder(exchange, headers, verb, path);
    const match = this.#router.match(method, path);
    if (isPreflight(verb, headers)) return respond(ok(preflightReply(match.kind === 'no-method' ? match.allowed : [])));
    if (match.kind === 'no-path') return respond(fail({ kind: 'not_found', what: `path ${path}` }));
    if (match.kind === 'no-method')
      return respond(fail({ kind: 'method_not_allowed', allowed: match.allowed.map((word) => word.toUpperCase()) }));
    const refusal = guarded.refusal(own, forbiddenTo(match.route));
    if (refusal !== undefined) return respond(fail(refusal));
    const inProgress = this.#inProgress.get(match.route);
    if (inProgress?.places.isFull === true) return respond(inProgress.refusal);
    const { route, params } = match;
    const unparsed = route.access === 'agent' ? new AgentRequest(guarded, params) : unparsedOf(guarded, params);
    const take = (body: BodyResult): void => this.#take(route, unparsed, body, respond);
    if (method === 'get') take(NO_BODY);
    else exchange.readBody({ maxBytes: MAX_BODY_BYTES, timeoutMs: bodyTimeoutMs }, take);
  }

  #responder(exchange: Exchange, headers: ReadonlyMap<string, string>, verb: string, path: string): Respond {
    const { corsOrigins, onCut } = this.#options;
    const sending: Sending = {
      headers: [
        ...SAFETY_HEADERS,
        ...corsHeaders(corsOrigins, headers.get('origin')),
        ...requestIdOf(headers.get('x-request-id')),
      ],
      isHead: verb === 'head',
      onCut: (fault) => onCut(fault, `${verb.toUpperCase()} ${path}`),
    };
    return (reply) => exchange.send(reply.ok ? reply.value : problemOf(reply.fault), sending);
  }

  /** A request is counted only now: a body that never arrives must not use up a place. */
  #take(route: Route, request: Unparsed, body: BodyResult, respond: Respond): void {
    const kept = copyOf(body);
    const answer = (): Promise<void> => this.#answerRow(route, request, kept).then(respond);
    const inProgress = this.#inProgress.get(route);
    if (inProgress === undefined) return void answer();
    if (inProgress.places.run(networkOf(request.remoteAddress), answer) === undefined) respond(inProgress.refusal);
  }

  async #answerRow(route: Route, request: Unparsed, body: BodyResult): Promise<HttpReply> {
    try {
      if (route.access === 'public') return await this.#answerPublic(route, request, body);
      if (route.access === 'agent') return await this.#answerAgent(route, request, body);
      return await this.#answerScoped(route, request, body);
    } catch (error) {
      this.#options.onError(error, `${route.method} ${route.path}`);
      return fail({ kind: 'internal' });
    }
  }

  async #answerPublic(route: PublicRow, request: Unparsed, body: BodyResult): Promise<HttpReply> {
    const { link } = this.#options.ports;
    const limited = await this.#overPublicLimit(route, request);
    if (limited !== undefined) return limited;
    const unknown = route.isQueryIgnored === true ? undefined : refuseUnknown(request.query, route.query);
    if (unknown !== undefined && (await this.#mayBeKnown(route, request))) return unknown;
    const parsed = route.isBodyIgnored === true ? ok(undefined) : parseBody(body, request.headers);
    return parsed.ok ? route.handle({ body: parsed.value, ...request }, link) : parsed;
  }

  /** Whether the row would not answer 401. The validity of a cookie is seen only when it is used. */
  async #mayBeKnown({ credentials }: PublicRow, { bearer, headers }: Unparsed): Promise<boolean> {
    if (credentials === undefined || credentials.includes('none')) return true;
    if (credentials.includes('refresh_cookie')) return headers.has('cookie');
    return bearer !== undefined && (await this.#options.ports.authenticate(bearer)).ok;
  }

  /** The row says in the words of its protocol who it does not know, and what is wrong with the rest. */
  async #answerAgent(route: AgentRow, request: Unparsed, body: BodyResult): Promise<HttpReply> {
    const refusal = refuseUnknown(request.query, route.query);
    const read = refusal === undefined ? body : ({ kind: 'refused', refusal } as const);
    return route.handle(Object.assign(request, { body: read }), this.#options.ports);
  }

  /** A valid bearer is a caller of its own, who does not feel what others at its address have used up. */
  async #overPublicLimit(
    { limit = 'address', credentials }: PublicRow,
    { bearer, remoteAddress }: Unparsed,
  ): ReturnType<typeof overLimit> {
    if (limit === 'none') return undefined;
    const { link, authenticate } = this.#options.ports;
    const known =
      bearer !== undefined && credentials?.includes('bearer') === true
        ? await authenticate(bearer, remoteAddress)
        : undefined;
    return known?.ok === true
      ? overLimit(link, 'credential', known.value.subject)
      : overLimit(link, limit, networkOf(remoteAddress));
  }

  /**
   * Only callers who may send a body have it parsed, which may take half a second, and are told what is wrong with it.
   */
  async #answerScoped(route: ScopedRow, request: Unparsed, body: BodyResult): Promise<HttpReply> {
    const { link, authenticate } = this.#options.ports;
    if (request.bearer === undefined) return NO_CREDENTIAL;
    const authenticated = await authenticate(request.bearer, request.remoteAddress);
    if (!authenticated.ok) {
      const own = route.handleOwn === undefined ? undefined : await this.#answerOwn(route, request, request.bearer);
      return own ?? (await overLimitOfStranger(link, request.remoteAddress)) ?? authenticated;
    }
    const principal = authenticated.value;
    const limited = await overLimit(link, route.limit ?? 'credential', principal.subject);
    if (limited !== undefined) return limited;
    const refused = refuseWithout(route.access.scope, principal);
    if (refused !== undefined) return refused;
    const parsed = parseBody(body, request.headers);
    if (!parsed.ok) return parsed;
    const misspelt = refuseUnknown(request.query, route.query) ?? refuseRepeated(request.query, route.query);
    if (misspelt !== undefined) return misspelt;
    const answer = (): Promise<HttpReply> => route.handle({ body: parsed.value, principal, ...request }, link);
    return route.isQueued === true
      ? await (this.#queue.run(principal.orgId, answer) ?? TOO_MANY_LISTINGS)
      : await answer();
  }

  /** Undefined where the bearer is no agent's token either. */
  async #answerOwn({ handleOwn, query }: ScopedRow, request: Unparsed, bearer: string): Promise<HttpReply | undefined> {
    const { link } = this.#options.ports;
    const credential = digestOfPresented(bearer);
    const { reply } = await link.ask({ type: 'find-agent', credential });
    if (!reply.ok) return reply;
    const { agent } = reply.value;
    if (agent === undefined) return undefined;
    const limited = await overLimit(link, 'credential', `agent:${agentKeyOf(agent)}`);
    if (limited !== undefined) return limited;
    const misspelt = refuseUnknown(request.query, query) ?? refuseRepeated(request.query, query);
    const voucher = { agent, credential, principal: undefined };
    return misspelt ?? handleOwn?.({ body: undefined, voucher, ...request }, link);
  }
}

/** All headers, for the handlers of rows. */
class RouteHead extends GuardedHead {
  readonly headers = new Map<string, string>();

  get traceparent(): string | undefined {
    return this.headers.get('traceparent');
  }

  protected override take(name: string, value: string): void {
    this.headers.set(name, value);
    super.take(name, value);
  }
}

function unparsedOf(guarded: RouteHead, params: Unparsed['params']): Unparsed {
  const { address, authorization, headers, query } = guarded;
  return {
    params,
    headers,
    query: new URLSearchParams(query),
    remoteAddress: address,
    bearer: bearerOf(authorization),
    caller: {
      traceparent: headers.get('traceparent'),
      address,
      get cancelled() {
        return guarded.cancelled;
      },
    },
  };
}

/**
 * Rows for agents are asked as often as checks are, and read little of a request: the rest is only looked up for who
 * reads it.
 */
class AgentRequest implements RawRequest {
  readonly #guarded: RouteHead;
  readonly params: Unparsed['params'];
  readonly headers: ReadonlyMap<string, string>;
  /** Set when it is whole. */
  body: RawRequest['body'] = NO_BODY;
  #query: URLSearchParams | undefined = undefined;

  constructor(guarded: RouteHead, params: Unparsed['params']) {
    this.#guarded = guarded;
    this.params = params;
    this.headers = guarded.headers;
  }

  get query(): URLSearchParams {
    this.#query ??= new URLSearchParams(this.#guarded.query);
    return this.#query;
  }
  get remoteAddress(): string {
    return this.#guarded.address;
  }
  get bearer(): string | undefined {
    return bearerOf(this.#guarded.authorization);
  }
  get caller(): RawRequest['caller'] {
    return this.#guarded;
  }
}

/** Refuses what a page could make a browser send in its user's place, or read under a host name of its own. */
const forbiddenTo = ({ method, isForOwnHosts }: Route): Forbidden =>
  method === 'get' ? { origins: false, hosts: isForOwnHosts === true } : { origins: true, hosts: true };

/** Copies a body that outlives its request's handler: parsing waits until the caller is known. */
const copyOf = (body: BodyResult): BodyResult =>
  body.kind === 'whole' ? { kind: 'whole', bytes: Buffer.from(body.bytes) } : body;

function parseBody(body: BodyResult, headers: ReadonlyMap<string, string>): Result<unknown, Fault> {
  if (body.kind === 'too-large') return fail({ kind: 'payload_too_large', limitBytes: MAX_BODY_BYTES });
  const { bytes } = body;
  if (bytes.length === 0) return ok(undefined);
  const type = headers.get('content-type');
  // None at all is what a page can send to a foreign host without asking it first.
  if (type === undefined || !/^application\/(json|[\w.-]+\+json)\b/i.test(type))
    return fail({ kind: 'unsupported_media_type', expected: 'application/json' });
  const coding = headers.get('content-encoding') || 'identity';
  if (coding !== 'identity') return fail({ kind: 'unsupported_media_type', expected: 'uncompressed application/json' });
  return attempt(() => parseJson(bytes));
}

const NO_BODY: BodyResult = { kind: 'whole', bytes: Buffer.alloc(0) };

const TOO_MANY_LISTINGS = overloaded('the number of lists being read');

const NO_CREDENTIAL = fail({
  kind: 'unauthenticated',
  detail: 'no credential presented; send an API key or access token as Authorization: Bearer …',
} as const);

/** Returned with every answer, errors too, so that a caller can find it in its own log. */
const requestIdOf = (id: string | undefined): readonly Header[] =>
  id !== undefined && /^[\x20-\x7e]{1,1024}$/.test(id) ? [['X-Request-ID', id]] : [];

const SAFETY_HEADERS: readonly Header[] = [
  ['X-Content-Type-Options', 'nosniff'],
  ['Cache-Control', 'no-store'],
];
