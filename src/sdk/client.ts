/** The agent's client: puts its parts together. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { Naps } from './backoff.ts';
import { Calls } from './calls.ts';
import { Checker } from './checks.ts';
import { ControlChannel } from './control.ts';
import { Credential } from './credential.ts';
import { ActionDeniedError, ClientClosedError, GatewayError, OpTerminatedError } from './errors.ts';
import { newSpanId, newTraceId } from './ids.ts';
import { checkBodyOf, requireText, type OpName } from './messages.ts';
import { RunningOp, type Op } from './op.ts';
import { settingsOf, type AgentClientOptions, type Settings } from './options.ts';
import { Orphans } from './orphans.ts';
import { Reachability } from './reachability.ts';
import { Transport } from './transport.ts';
import type { Action, CheckAnswer, CheckRequest, ClientState, Usage, UsageAnswer } from './types.ts';

export type AgentClient = {
  readonly state: ClientState;

  /**
   * Resolves when signals can arrive for the first time; nothing has to wait for it, checks wait by themselves. Rejects with a
   * GatewayError when the gateway refuses the credential.
   */
  ready(): Promise<void>;

  /**
   * Asks whether an action may be taken. An action that is allowed is an operation of the gateway from then on: tell its end by
   * `complete`, or use `run`, which does.
   *
   *     const { decision, reason } = await agent.check({ action: 'file.read', resource: '/workspace/notes.md' });
   *
   * Resolves within `deadlines.checkMs`, whatever happens to the gateway; see `onUnreachable`. Rejects with a GatewayError
   * (`invalid_argument`) when the request is malformed, and when the API key is refused.
   */
  check(request: CheckRequest): Promise<CheckAnswer>;

  /**
   * Asks, acts, and tells the gateway when it is done.
   *
   *     const page = await agent.run({ action: 'tool.call', resource: 'web_search' }, async (op) => {
   *       for (const query of queries) {
   *         await op.checkpoint();
   *         await search(query, { signal: op.signal });
   *       }
   *     });
   *
   * Rejects with an ActionDeniedError, without calling the body, when the action is denied; with an OpTerminatedError when an
   * operator terminates the operation before it is complete, whether the body has noticed or not; otherwise with what the body has
   * thrown, after the operation is complete all the same. An operation that is paused when its body returns is complete when it
   * is resumed. `run` within a body takes the trace id of the operation around it and a new span id; a signal to the operation
   * around it reaches it too.
   */
  run<T>(action: Action, body: (op: Op) => T | Promise<T>): Promise<T>;

  /** Tells that an operation which `check` has allowed is done, and what it has cost. Rejects with a GatewayError. */
  complete(opId: string, outcome?: { readonly costUsd?: number | undefined }): Promise<void>;

  /** Records what was spent. Rejects with a GatewayError. Tried until it is answered, and counted once. */
  recordUsage(usage: Usage): Promise<UsageAnswer>;

  /**
   * Takes nothing new, waits for what is under way (at most `deadlines.closeMs`; bodies that still run are then aborted with a
   * ClientClosedError), and disconnects. Nothing of the client keeps the process alive afterwards.
   */
  close(): Promise<void>;
};

/**
 * Connects an agent to its gateway.
 *
 *     const agent = createAgentClient({
 *       address: '127.0.0.1:50051',
 *       agent: { orgId: 'acme', teamId: 'search', agentId: 'crawler-1' },
 *       apiKey: process.env.SVC_API_KEY,
 *     });
 *
 * Answers at once and connects behind the scenes, again and again when the connection is lost. Throws a TypeError that names the
 * option which is wrong.
 */
export const createAgentClient = (options: AgentClientOptions): AgentClient => new ConnectedAgent(settingsOf(options));

/** After `closeMs`, for bodies to notice that they are aborted. */
const LAST_WORDS_MS = 500;
const PAUSE_POLL_MS = 250;

type Outcome<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: unknown };

class ConnectedAgent implements AgentClient {
  readonly #settings: Settings;
  readonly #transport: Transport;
  readonly #credential: Credential;
  readonly #reach: Reachability;
  readonly #checker: Checker;
  readonly #control: ControlChannel;
  readonly #calls: Calls;
  readonly #orphans: Orphans;
  readonly #naps = new Naps();
  readonly #around = new AsyncLocalStorage<RunningOp>();
  readonly #whenIdle = new Set<() => void>();
  #active = 0;
  #isClosing = false;
  #isClosed = false;
  #closing: Promise<void> | undefined;

  constructor(settings: Settings) {
    this.#settings = settings;
    const transport = new Transport(settings.address, settings.tls);
    const reach = new Reachability(settings.outageMs, () => this.#control.hurry());
    const credential = new Credential(settings, transport, reach);
    const parts = { settings, transport, credential, reach };
    this.#transport = transport;
    this.#reach = reach;
    this.#credential = credential;
    this.#calls = new Calls({ ...parts, naps: this.#naps, isClosed: () => this.#isClosed });
    this.#orphans = new Orphans((opId) => this.#calls.complete(opId, undefined), settings.onWarning);
    this.#checker = new Checker({ ...parts, onOrphan: (opId) => this.#abandon(opId) });
    this.#control = new ControlChannel({ ...parts, onReturn: () => void this.#orphans.settle() });
  }

  get state(): ClientState { return this.#control.state; }

  ready(): Promise<void> { return this.#control.ready(); }

  check(request: CheckRequest): Promise<CheckAnswer> {
    return this.#during(() => {
      const body = checkBodyOf(request, this.#settings.agent, this.#nameOf(request));
      return this.#checker.check(body, request.spanId === undefined && request.dryRun !== true);
    });
  }

  run<T>(action: Action, body: (op: Op) => T | Promise<T>): Promise<T> {
    return this.#during(() => this.#run(action, body));
  }

  complete(opId: string, { costUsd }: { readonly costUsd?: number | undefined } = {}): Promise<void> {
    return this.#during(() => {
      requireText(opId, 'opId');
      return this.#calls.complete(opId, costUsd);
    });
  }

  recordUsage(usage: Usage): Promise<UsageAnswer> {
    return this.#during(() => this.#calls.recordUsage(usage));
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** Within the body of an operation, everything belongs to its trace. */
  #nameOf({ traceId, spanId }: Action): OpName {
    return { traceId: traceId ?? this.#around.getStore()?.traceId ?? newTraceId(), spanId: spanId ?? newSpanId() };
  }

  async #run<T>(action: Action, body: (op: Op) => T | Promise<T>): Promise<T> {
    const { traceId, spanId } = this.#nameOf(action);
    const op = new RunningOp(traceId, spanId, this.#around.getStore(), (costUsd, opId) => this.#calls.recordUsage({ costUsd, opId }));
    if (this.#control.has(op.opId)) throw new TypeError(`operation ${op.opId} runs already`);
    const check = checkBodyOf(action, this.#settings.agent, op);
    // Before the check: a signal may overtake its answer.
    this.#control.attach(op);
    try {
      const answer = await this.#checker.check(check, action.spanId === undefined);
      if (answer.decision === 'deny') throw new ActionDeniedError(action.action, action.resource, answer);
      op.begin(answer);
    } catch (error) {
      this.#control.detach(op);
      throw error;
    }
    return this.#act(op, check, body);
  }

  async #act<T>(op: RunningOp, check: ReturnType<typeof checkBodyOf>, body: (op: Op) => T | Promise<T>): Promise<T> {
    const outcome = await settled(() => this.#around.run(op, async () => {
      op.signal.throwIfAborted();
      const value = await body(op);
      // Paused: it is not complete before it is resumed. Terminated: what comes after it must not go on.
      await op.checkpoint();
      return value;
    }));
    op.end();
    const isSettled = op.state === 'terminated' || (await this.#report(op, check, outcome.ok));
    if (isSettled) this.#control.detach(op);
    if (op.state === 'terminated') throw terminationOf(op, outcome);
    if (!outcome.ok) throw outcome.error;
    return outcome.value;
  }

  /**
   * Tells the gateway that the body is over. The work is done by now, so nothing of this fails the run. False when the operation
   * is paused and `isPatient` is false: the body has thrown, and its error must not wait for an operator.
   */
  async #report(op: RunningOp, check: ReturnType<typeof checkBodyOf>, isPatient: boolean): Promise<boolean> {
    if (op.answer.unreachable) {
      this.#abandon(op.opId);
      return true;
    }
    for (;;) {
      if (op.state === 'paused') {
        if (!isPatient) {
          void op.checkpoint().then(() => this.#report(op, check, true), () => true).then(() => this.#control.detach(op));
          return false;
        }
        const resumed = await settled(() => op.checkpoint());
        if (!resumed.ok) return true;
      }
      const reported = await settled(() => this.#calls.complete(op.opId, undefined));
      if (reported.ok) {
        op.complete();
        return true;
      }
      const { error } = reported;
      if (error instanceof GatewayError && error.code === 'failed_precondition') {
        const state = await this.#stateAtGateway(check);
        if (state === 'terminated') op.obey('terminate', () => {});
        if (state !== 'paused' && state !== 'running') return true;
        // Its signal is on the way.
        if (state === 'paused' && op.state !== 'paused') await this.#naps.sleep(PAUSE_POLL_MS);
        continue;
      }
      // The gateway has restarted since: it does not know the operation any more.
      if (error instanceof GatewayError && error.code === 'not_found') return true;
      if (this.#reach.isLost) this.#abandon(op.opId);
      else if (!(error instanceof ClientClosedError)) this.#settings.onWarning(new Error(`operation ${op.opId} could not be reported complete`, { cause: error }));
      return true;
    }
  }

  /** A check that is not carried out tells the state of an operation of one's own, and changes nothing. */
  async #stateAtGateway(check: ReturnType<typeof checkBodyOf>): Promise<CheckAnswer['opState']> {
    const asked = await settled(() => this.#checker.check({ ...check, dryRun: true }, false));
    return asked.ok ? asked.value.opState : undefined;
  }

  #abandon(opId: string): void {
    this.#orphans.add(opId);
    if (this.state === 'connected') void this.#orphans.settle();
  }

  /** Counts what is under way, for `close`. */
  async #during<T>(work: () => Promise<T>): Promise<T> {
    // What is under way may go on: the body of an operation can finish what it does.
    if (this.#isClosed || (this.#isClosing && this.#around.getStore() === undefined)) throw new ClientClosedError();
    this.#active += 1;
    try {
      return await work();
    } finally {
      this.#active -= 1;
      if (this.#active === 0) for (const idle of this.#whenIdle) idle();
    }
  }

  async #close(): Promise<void> {
    this.#isClosing = true;
    await this.#idleWithin(this.#settings.closeMs);
    for (const op of this.#control.ops) op.abort(new ClientClosedError());
    await this.#idleWithin(LAST_WORDS_MS);
    this.#isClosed = true;
    this.#checker.drain();
    this.#control.close();
    this.#checker.close();
    this.#credential.close();
    this.#naps.end();
    this.#reach.close();
    this.#transport.close();
  }

  #idleWithin(ms: number): Promise<void> {
    if (this.#active === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const settle = (): void => {
        clearTimeout(timer);
        this.#whenIdle.delete(settle);
        resolve();
      };
      const timer = setTimeout(settle, ms);
      this.#whenIdle.add(settle);
    });
  }
}

async function settled<T>(work: () => Promise<T>): Promise<Outcome<T>> {
  try {
    return { ok: true, value: await work() };
  } catch (error) {
    return { ok: false, error };
  }
}

function terminationOf(op: RunningOp, outcome: Outcome<unknown>): OpTerminatedError {
  if (!outcome.ok && outcome.error instanceof OpTerminatedError) return outcome.error;
  return new OpTerminatedError(op.opId, undefined, outcome.ok ? {} : { cause: outcome.error });
}
