/** An agent's session with one or more servers: every message between them passes here. */
import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { isMapping } from '../core/base/mapping.ts';
import { Completions } from './completions.ts';
import { Control } from './control.ts';
import type { Gateway } from './gateway.ts';
import { governed } from './governed-call.ts';
import { initialized } from './handshake.ts';
import { Instructions } from './instructions.ts';
import {
  type Answer,
  errorOf,
  type Fields,
  type Id,
  isNotification,
  isRequest,
  type Message,
  type Notification,
  notificationOf,
  progressTokenOf,
  type Request,
  RPC_CODE,
  resultOf,
} from './json-rpc.ts';
import { LISTEN, listened } from './listening.ts';
import { LISTS, Lists } from './lists.ts';
import { passed } from './passing.ts';
import type { PinStore } from './pin-store.ts';
import { Refusals } from './refusals.ts';
import { type Route, type Routing, routingOf } from './routing.ts';
import type { Signals } from './signals.ts';
import { askedBy, legibleIn, unprefixed } from './subjects.ts';
import { type Sent, Upstream, type UpstreamRow } from './upstream.ts';

/** More requests at once than this are refused. */
const MAX_RUNNING = 256;
const IDLE_POLL_MS = 10;
/** Notifications that an agent may send, and those that servers may. */
const FROM_AGENT: ReadonlySet<string> = new Set(['notifications/initialized', 'notifications/roots/list_changed']);
const FROM_SERVER: ReadonlySet<string> = new Set([
  'notifications/message',
  'notifications/tools/list_changed',
  'notifications/prompts/list_changed',
  'notifications/resources/list_changed',
  'notifications/resources/updated',
  'notifications/elicitation/complete',
  'notifications/subscriptions/acknowledged',
]);
/** Requests that servers may send to an agent's client. */
const ASKED_OF_AGENT: ReadonlySet<string> = new Set(['roots/list', 'sampling/createMessage', 'elicitation/create']);
const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';

export type SessionOptions = {
  readonly gateway: Gateway;
  readonly signals: Signals;
  readonly pins: PinStore;
  readonly log: (line: string) => void;
  readonly servers: readonly UpstreamRow[];
  /** With the names of several servers in those of their tools. */
  readonly isPrefixed: boolean;
  /** Writes to the log what lists leave out, and why: for a person who sees the log of one session. */
  readonly tellsWithheld: boolean;
  /** `related`: the request of the agent that the message is about. */
  readonly toAgent: (message: Message, related?: Id) => void;
  /** A server has gone, and what was asked of it is answered. */
  readonly onServerClosed: (name: string, why: string) => void;
};

type Running = {
  readonly request: Request;
  readonly control: Control;
  upstream?: Upstream;
  sent?: Sent;
  /** Counts the progress messages that the session sent by itself. */
  beats: number;
  /** The client has cancelled it, even if it had ended otherwise before: nothing may follow. */
  isUnwanted: boolean;
};

type Asked = {
  readonly upstream?: Upstream;
  /** Under which the asker wants progress. */
  readonly token?: Id | undefined;
  readonly settle: (answer: Answer) => void;
};

export class Session {
  readonly traceId = randomBytes(16).toString('hex');
  readonly #options: SessionOptions;
  readonly #upstreams: readonly Upstream[];
  readonly #lists: Lists;
  readonly #completions: Completions;
  readonly #refusals: Refusals;
  readonly #instructions: Instructions;
  readonly #routing: Routing;
  readonly #running = new Map<Id, Running>();
  /** Requests of servers, or of the session itself, to the agent's client. */
  readonly #asked = new Map<Id, Asked>();
  /** Messages of servers while the client waits for the answer to `initialize`. */
  #early: { readonly message: Message; readonly related: Id | undefined }[] | undefined;
  #lastAsked = 0;
  #canElicit = false;
  #isClosed = false;

  constructor(options: SessionOptions) {
    this.#options = options;
    const { gateway, pins, log } = options;
    const { tellsWithheld } = options;
    this.#lists = new Lists({ gateway, pins, log, tellsWithheld, traceId: this.traceId });
    this.#instructions = new Instructions(pins, log);
    this.#completions = new Completions(gateway, log);
    this.#refusals = new Refusals({ record: (refused, reason) => gateway.record(refused, reason), log });
    this.#upstreams = options.servers.map(
      (row) =>
        new Upstream(row, {
          onRequest: (from, request) => this.#askAgent(from, request),
          onNotification: (from, notification) => this.#notified(from, notification),
          onClosed: (from, why) => options.onServerClosed(from.name, why),
        }),
    );
    this.#routing = routingOf(this.#upstreams, this.#lists, options.isPrefixed, log);
  }

  get runningCount(): number {
    return this.#running.size;
  }

  /** Resolves when nothing runs, or after this long. */
  async idleWithin(ms: number): Promise<void> {
    const endMs = performance.now() + ms;
    while (this.#running.size > 0 && performance.now() < endMs) await sleep(IDLE_POLL_MS);
  }

  receive(message: Message): void {
    if (this.#isClosed) return;
    if (isRequest(message)) void this.#serve(message);
    else if (isNotification(message)) this.#onNotification(message);
    else {
      const asked = this.#asked.get(message.id);
      this.#asked.delete(message.id);
      asked?.settle(message);
    }
  }

  /** Ends what runs, reports it, and lets the servers go. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const { control } of this.#running.values()) control.end({ kind: 'closed', reason: 'the session has ended' });
    // Ended requests report their end in the turns that follow.
    await new Promise(setImmediate);
    await Promise.all([
      ...this.#upstreams.map((upstream) => upstream.close()),
      this.#completions.idleWithin(2_000),
      this.#refusals.closeWithin(2_000),
    ]);
  }

  async #serve(request: Request): Promise<void> {
    const { id } = request;
    if (this.#running.has(id)) return this.#answer(errorOf(id, RPC_CODE.invalidRequest, 'the id is in use'));
    if (this.#running.size >= MAX_RUNNING)
      return this.#answer(errorOf(id, RPC_CODE.internal, `more than ${MAX_RUNNING} requests at once`));
    const running: Running = { request, control: new Control(), beats: 0, isUnwanted: false };
    this.#running.set(id, running);
    if (request.method === 'initialize') this.#early ??= [];
    try {
      const answer = await this.#answerTo(running);
      if (answer !== undefined && !running.isUnwanted) this.#answer({ ...answer, id });
    } catch (error) {
      this.#options.log(`unexpected error: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
      this.#answer(errorOf(id, RPC_CODE.internal, 'unexpected error in svc mcp'));
    } finally {
      this.#running.delete(id);
      if (request.method === 'initialize') this.#sendEarly();
    }
  }

  /** A message that is no answer. Clients take what comes first for that to `initialize`, so none comes before. */
  #toAgent(message: Message, related?: Id): void {
    if (this.#early === undefined) this.#options.toAgent(message, related);
    else if (this.#early.length < MAX_RUNNING) this.#early.push({ message, related });
  }

  #sendEarly(): void {
    const early = this.#early ?? [];
    this.#early = undefined;
    if (!this.#isClosed) for (const { message, related } of early) this.#options.toAgent(message, related);
  }

  #answer(answer: Answer): void {
    if (!this.#isClosed) this.#options.toAgent(answer);
  }

  async #answerTo(running: Running): Promise<Answer | undefined> {
    const { request, control } = running;
    const { id, method, params } = request;
    if (method === 'ping') return resultOf(id, {});
    if (method === 'initialize') {
      this.#canElicit = isMapping(params?.capabilities) && isMapping(params.capabilities.elicitation);
      return initialized(request, this.#upstreams, {
        isPrefixed: this.#options.isPrefixed,
        instructions: this.#instructions,
        log: this.#options.log,
      });
    }
    if (Object.hasOwn(LISTS, method)) return this.#unlessEnded(control, this.#routing.list(request));
    const asked = askedBy(request);
    if (typeof asked === 'string') return this.#refused(request, asked);
    if (asked !== undefined) {
      const route = await this.#routing.route(asked);
      return 'problem' in route ? this.#refused(request, route.problem) : this.#govern(running, route);
    }
    const passing = this.#routing.passing(request);
    if (passing === undefined)
      return errorOf(
        id,
        RPC_CODE.methodNotFound,
        `${method} is not passed on by svc mcp, because it cannot be checked`,
      );
    return method === LISTEN ? this.#listen(running, passing) : this.#passKnown(running, passing);
  }

  async #listen(running: Running, [upstream]: readonly Upstream[]): Promise<Answer | undefined> {
    const { request, control } = running;
    const listener = { gateway: this.#options.gateway, traceId: this.traceId, server: upstream?.name ?? '' };
    const may = await this.#unlessEnded(control, listened(request, listener));
    if (may !== undefined && 'params' in may) return this.#pass(running, upstream ? [upstream] : [], may.params);
    return may?.error?.code === RPC_CODE.invalidParams ? this.#refused(request, may.error.message) : may;
  }

  async #passKnown(running: Running, upstreams: readonly Upstream[]): Promise<Answer | undefined> {
    const { request, control } = running;
    const servers = upstreams.map(({ name }) => name);
    const passer = { gateway: this.#options.gateway, traceId: this.traceId, servers };
    const may = await this.#unlessEnded(control, passed(request, passer));
    if (may === undefined || !('servers' in may)) return may;
    const asked = upstreams.filter(({ name }) => may.servers.includes(name));
    const answer = await this.#pass(running, asked, may.params);
    const [only] = upstreams;
    return request.method === 'server/discover' && only !== undefined && answer?.result !== undefined
      ? { ...answer, result: await this.#instructions.described(only.name, answer.result) }
      : answer;
  }

  #refused({ id, method, params }: Request, reason: string): Answer {
    this.noteRefused(method, params, reason);
    return errorOf(id, RPC_CODE.invalidParams, reason);
  }

  /** Has it on record that a request was refused which, were it well-formed, would be checked. */
  noteRefused(method: string, params: Fields | undefined, reason: string): void {
    const legible = legibleIn(method, params);
    if (legible === undefined) return;
    const { action, name } = legible;
    const [only] = this.#upstreams;
    const split = this.#options.isPrefixed ? unprefixed(name) : { server: only?.name ?? '', name };
    this.#refusals.report({ action, resource: split === undefined ? name : `${split.server}/${split.name}` }, reason);
  }

  /** Requests go to their servers without an operation. */
  async #pass(
    running: Running,
    upstreams: readonly Upstream[],
    params: Fields | undefined,
  ): Promise<Answer | undefined> {
    const { request, control } = running;
    const sent = upstreams.map((upstream) => ({ upstream, sent: upstream.request(request.method, params) }));
    const [only] = sent;
    if (only !== undefined && sent.length === 1) {
      running.upstream = only.upstream;
      running.sent = only.sent;
    }
    const answers = await this.#unlessEnded(control, Promise.all(sent.map(({ sent: { answer } }) => answer)));
    if (answers === undefined) {
      for (const each of sent) each.upstream.cancel(each.sent, control.ending?.reason ?? '');
      return undefined;
    }
    return answers.find(({ error }) => error !== undefined) ?? answers[0] ?? resultOf(request.id, {});
  }

  async #unlessEnded<T>(control: Control, work: Promise<T>): Promise<T | undefined> {
    return Promise.race([work, control.ended.then(() => undefined)]);
  }

  #govern(running: Running, { upstream, asked }: Route): Promise<Answer | undefined> {
    const { gateway, signals, log } = this.#options;
    const { request, control } = running;
    const token = progressTokenOf(request);
    running.upstream = upstream;
    return governed({
      gateway,
      signals,
      log,
      completions: this.#completions,
      refusals: this.#refusals,
      request,
      asked,
      upstream,
      control,
      op: { traceId: this.traceId, spanId: newSpan() },
      changed: () => this.#lists.changed(upstream, metaOf(request)),
      progress: token === undefined ? undefined : (message) => this.#beat(running, token, message),
      elicit: this.#canElicit ? (params) => this.#elicit(params, request.id) : undefined,
      onSent: (sent) => {
        running.sent = sent;
      },
    });
  }

  /** Progress may only grow, so what the session reports by itself stays below what a server begins with. */
  #beat(running: Running, progressToken: Id, message: string): void {
    running.beats += 1;
    const params = { progressToken, progress: running.beats / 1_000_000, message };
    this.#toAgent(notificationOf('notifications/progress', params), running.request.id);
  }

  #elicit(params: Fields, related: Id): { readonly answer: Promise<Answer>; cancel(): void } {
    const id = this.#nextId();
    const answer = new Promise<Answer>((settle) => {
      this.#asked.set(id, { settle });
    });
    this.#toAgent({ jsonrpc: '2.0', id, method: 'elicitation/create', params }, related);
    const cancel = (): void => {
      if (!this.#asked.delete(id)) return;
      const notification = { requestId: id, reason: 'there is a decision' };
      this.#toAgent(notificationOf('notifications/cancelled', notification), related);
    };
    return { answer, cancel };
  }

  #nextId(): Id {
    this.#lastAsked += 1;
    return `svc-${this.#lastAsked}`;
  }

  /** A notification of the agent. */
  #onNotification({ method, params }: Notification): void {
    if (method === 'notifications/cancelled') {
      const id = params?.requestId;
      const running = typeof id === 'string' || typeof id === 'number' ? this.#running.get(id) : undefined;
      if (running === undefined) return;
      running.isUnwanted = true;
      // Its end goes to the server by its own way, under the server's id for it.
      running.control.end({ kind: 'cancelled', reason: 'the client has cancelled the request' });
    } else if (method === 'notifications/progress') {
      for (const { upstream, token } of this.#asked.values())
        if (token !== undefined && token === params?.progressToken) upstream?.notify(notificationOf(method, params));
    } else if (FROM_AGENT.has(method)) {
      // They say nothing but their names; what else is in them is not checked.
      for (const upstream of this.#upstreams) upstream.notify(notificationOf(method));
    }
  }

  /** A notification of a server. */
  #notified(from: Upstream, { method, params }: Notification): void {
    if (method === 'notifications/progress') {
      const running = [...this.#running.values()].find(
        ({ request, upstream, control }) =>
          upstream === from && control.ending === undefined && progressTokenOf(request) === params?.progressToken,
      );
      // Nothing may follow a cancellation.
      if (running !== undefined) this.#toAgent(notificationOf(method, params), running.request.id);
    } else if (method === 'notifications/cancelled') {
      const given = params?.requestId;
      if (typeof given !== 'string' && typeof given !== 'number') return;
      for (const [id, asked] of this.#asked)
        if (asked.upstream === from && `${from.name} ${given}` === id)
          this.#toAgent(notificationOf(method, { ...params, requestId: id }));
    } else if (FROM_SERVER.has(method)) {
      this.#toAgent(notificationOf(method, this.#translated(from, params)), this.#latestOf(from));
    }
  }

  /** A subscription is named by the id of its request, which is another one for the server. */
  #translated(from: Upstream, params: Fields | undefined): Fields | undefined {
    const meta = params?._meta;
    if (!isMapping(meta) || meta[SUBSCRIPTION_ID] === undefined) return params;
    const running = [...this.#running.values()].find(
      ({ upstream, sent }) => upstream === from && sent?.id === meta[SUBSCRIPTION_ID],
    );
    return { ...params, _meta: { ...meta, ...(running && { [SUBSCRIPTION_ID]: running.request.id }) } };
  }

  /** A server says by itself what is, most likely, about what was asked of it last. */
  #latestOf(from: Upstream): Id | undefined {
    return [...this.#running.values()].filter(({ upstream, sent }) => upstream === from && sent !== undefined).at(-1)
      ?.request.id;
  }

  #askAgent(from: Upstream, request: Request): void {
    if (request.method === 'ping') return from.respond(resultOf(request.id, {}));
    if (!ASKED_OF_AGENT.has(request.method) || this.#asked.size >= MAX_RUNNING)
      return from.respond(
        errorOf(request.id, RPC_CODE.methodNotFound, `${request.method} is not passed on by svc mcp`),
      );
    const id = `${from.name} ${request.id}`;
    this.#asked.set(id, {
      upstream: from,
      token: progressTokenOf(request),
      settle: (answer) => from.respond({ ...answer, id: request.id }),
    });
    this.#toAgent({ ...request, id }, this.#latestOf(from));
  }
}

/** Takes half a UUID, for which random bytes are kept ready. */
const newSpan = (): string => randomUUID().replaceAll('-', '').slice(16);

/** Picks the metadata that newer clients send with every request instead of once, for requests of the session's own. */
function metaOf({ params }: Request): Fields | undefined {
  if (!isMapping(params?._meta)) return undefined;
  const kept = Object.entries(params._meta).filter(([name]) => name.startsWith('io.modelcontextprotocol/'));
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}
