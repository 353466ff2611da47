/** The agent's client: puts its parts together. */
import { Approvals } from './approvals.ts';
import { Calls } from './calls.ts';
import { Checker } from './checks.ts';
import { ControlChannel } from './control.ts';
import { Credential } from './credential.ts';
import { ClientClosedError, UnconfirmedWarning } from './errors.ts';
import { type GuardOptions, guarded } from './guard.ts';
import { Homes } from './homes.ts';
import {
  checkBodyOf,
  requireAction,
  requireCallOptions,
  requireCompletion,
  requireRequest,
  requireRunOptions,
  requireUsage,
} from './messages.ts';
import type { Op } from './op.ts';
import { heard, type Settings } from './options.ts';
import { OrphanSettler, Orphans } from './orphans.ts';
import { PolledControl } from './polled-control.ts';
import { Reachability } from './reachability.ts';
import { Runs } from './runs.ts';
import { requireText } from './text.ts';
import type { Transport } from './transport.ts';
import type {
  Action,
  Approval,
  CheckAnswer,
  CheckRequest,
  ClientState,
  Completion,
  RunOptions,
  Usage,
  UsageAnswer,
} from './types.ts';
import { type CallOptions, Sleeper, Underway, unlessAborted } from './waiters.ts';

/**
 * An agent, connected to its gateway. Calls reject with a TypeError for a value of the wrong type, and with a
 * ClientClosedError once the client is closed.
 */
export type AgentClient = {
  /** Whether signals of operators arrive. */
  readonly state: ClientState;

  /**
   * Resolves once signals can arrive. Waiting for it is optional: checks wait for the connection themselves. Rejects
   * with a GatewayError when the gateway refuses the credential. Like every call, it stops waiting when `signal` is
   * aborted, and rejects with its reason.
   */
  ready(options?: CallOptions): Promise<void>;

  /**
   * Asks whether an action may be taken. An allowed action is a running operation at the gateway: report its end with
   * `complete`, or use `run`, which does so for you.
   *
   *     const { decision, reason } = await agent.check({ action: 'file.read', resource: '/workspace/notes.md' });
   *
   * Resolves within `deadlines.checkMs`, even if the gateway is unreachable, shutting down or busy; see
   * `onUnreachable`. Rejects with a GatewayError when the gateway, or a proxy before it, refuses the request for good:
   * `invalid_argument` when it is malformed, `resource_exhausted` when it is over 1 MiB, `unauthenticated` or
   * `permission_denied` when the API key is not valid for it, `internal` when the gateway fails on it.
   *
   * `pending` means that people have to approve it, and that it must not be taken yet: pass `approvalId` to
   * `waitApproval`, then check again, with the same ids.
   *
   * If `signal` is aborted before the answer and the action is allowed anyway, it is completed, unless you chose its
   * `spanId`.
   */
  check(request: CheckRequest, options?: CallOptions): Promise<CheckAnswer>;

  /**
   * Checks the action, runs the body if it is allowed, and reports its end.
   *
   *     const page = await agent.run({ action: 'tool.call', resource: 'web_search' }, async (op) => {
   *       for (const query of queries) {
   *         await op.checkpoint();
   *         await search(query, { signal: op.signal });
   *       }
   *     });
   *
   * An action that people have to approve waits for them, up to `deadlines.approvalMs`, and then counts as denied, with
   * the cause `approval`. Obligations of an allow are met: see `supportedObligations` of the action.
   *
   * Rejects with
   * - an ActionDeniedError when the action is denied; the body is not called;
   * - an OpTerminatedError when an operator terminates the operation before it is complete, whether the body has
   *   noticed or not;
   * - a GatewayError in the same cases as `check`;
   * - the reason of `signal` when it is aborted; a running body learns of it through `op.signal`, and ends first;
   * - a TypeError when an obligation is about what the body returned, and that cannot be edited;
   * - otherwise whatever the body throws; the operation is completed as failed then, with the message of the error.
   *
   * An operation that is paused when its body returns is completed once it is resumed. Within a body, `run` uses the
   * trace id of the surrounding operation and a new span id; signals to the surrounding operation reach the inner one
   * too.
   */
  run<T>(action: Action, body: (op: Op) => T | Promise<T>, options?: RunOptions): Promise<T>;

  /**
   * The function behind a check, as a tool that a model calls: each call is `tool.call` on the name, runs if it is
   * allowed, and is reported as complete or, with what the function throws, as failed.
   *
   *     const pay = agent.guard('pay', async ({ amount }) => bank.pay(amount));
   *     await pay({ amount: 500 });
   *
   * The members of an object argument are the attributes. Obligations of an allow are applied to the argument and to
   * the result. Waits for people who have to approve it, as `run` does, and rejects as `run` does.
   */
  guard<Args extends readonly unknown[], Result>(
    name: string,
    fn: (...args: Args) => Result,
    options?: GuardOptions,
  ): (...args: Args) => Promise<Awaited<Result>>;

  /**
   * Resolves once people have decided on an approval, or it is over otherwise; after `deadlines.approvalMs` with the
   * state so far, which is `pending`. Waits across restarts of the gateway.
   *
   *     const asked = { action: 'tool.call', resource: 'pay', traceId: 'order-17', spanId: 'payment' };
   *     let answer = await agent.check(asked);
   *     if (answer.approvalId !== undefined && (await agent.waitApproval(answer.approvalId)).state === 'approved')
   *       answer = await agent.check(asked);
   *
   * Rejects with a GatewayError, such as `not_found`.
   */
  waitApproval(approvalId: string, options?: CallOptions): Promise<Approval>;

  /**
   * Takes back the request for an approval. Resolves to false where it was decided, used or over before. Rejects with a
   * GatewayError.
   */
  cancelApproval(approvalId: string, options?: CallOptions): Promise<boolean>;

  /**
   * Reports that an operation allowed by `check` is done, with its cost in US dollars, which the gateway counts once,
   * or that it has failed, with an `error`.
   *
   *     const { decision, opId } = await agent.check({ action: 'tool.call', resource: 'translate', estimatedCostUsd:
   * 0.05 });
   *     if (decision === 'allow') await agent.complete(opId, { costUsd: await translate() });
   *
   * Retried for `deadlines.callMs`, even after `signal` has ended the wait; a failure is then reported to `onWarning`.
   * Rejects with a GatewayError.
   */
  complete(opId: string, outcome?: Completion): Promise<void>;

  /**
   * Records what was spent. Retried like `complete`, even across a restart of the gateway, and counted once. Rejects
   * with a GatewayError.
   *
   *     const usage = await agent.recordUsage({ costUsd: 0.002, opId });
   *     if (usage.status === 'limit_exceeded') console.warn(`over the ${usage.period} budget of the ${usage.tier}`);
   */
  recordUsage(usage: Usage, options?: CallOptions): Promise<UsageAnswer>;

  /**
   * Accepts no more calls, waits at most `deadlines.closeMs` for those in progress, aborts running bodies with a
   * ClientClosedError, and disconnects: up to a second later, for these bodies to end and the last acknowledgements to
   * be sent. Afterwards the client does not keep the process alive.
   */
  close(): Promise<void>;
};

export type Connect = (settings: Settings, onUnconfirmed: (gateways: readonly string[]) => void) => Transport;

/** A client over what `connect` makes. */
export const connectedAgent = (settings: Settings, connect: Connect): AgentClient =>
  new ConnectedAgent(settings, connect);

/** Extra time after `closeMs` for aborted bodies to end and for the last acknowledgements to be sent. */
const LAST_WORDS_MS = 500;

/**
 * The parts of one client. Each is built from those above it, and listens to their events: nothing refers to what does
 * not exist yet.
 */
function partsOf(settings: Settings, connect: Connect) {
  const underway = new Underway();
  const transport = connect(settings, (gateways) => settings.onWarning(new UnconfirmedWarning(gateways)));
  const reach = new Reachability(settings.outageMs);
  const credential = new Credential(settings, transport, reach);
  const orphans = new Orphans(settings.onWarning);
  const homes = new Homes();
  const shared = { settings, underway, transport, reach, credential, orphans, homes };
  const checker = new Checker(shared);
  const calls = new Calls({ ...shared, checker });
  const approvals = new Approvals(shared);
  const control = hasStreams(transport)
    ? new ControlChannel({ ...shared, transport })
    : new PolledControl({ ...shared, checker });
  const settler = new OrphanSettler({
    ...shared,
    complete: (opId) => calls.completeUnlessLost(opId),
    stateOf: (opId) => checker.stateOfOp(opId),
    isReachable: () =>
      control.state === 'connected' || (!reach.isLost && control.state !== 'refused' && control.state !== 'closed'),
    onWarning: settings.onWarning,
  });
  const runs = new Runs({ ...shared, checker, calls, approvals, control });
  return { ...shared, checker, calls, approvals, control, settler, runs };
}

const hasStreams = (transport: Transport): transport is Transport & Required<Pick<Transport, 'openControl'>> =>
  transport.openControl !== undefined;

class ConnectedAgent implements AgentClient {
  readonly #parts: ReturnType<typeof partsOf>;
  #phase: 'open' | 'closing' | 'closed' = 'open';
  #closing: Promise<void> | undefined;

  constructor(settings: Settings, connect: Connect) {
    this.#parts = partsOf(settings, connect);
    heard(this, settings);
  }

  get state(): ClientState {
    return this.#parts.control.state;
  }

  // Asynchronous, so that what cannot be read at all, such as `null` for the options, is a rejection too.
  async ready(options: CallOptions = {}): Promise<void> {
    requireCallOptions(options);
    return unlessAborted(options.signal, this.#parts.control.ready());
  }

  async check(request: CheckRequest, options: CallOptions = {}): Promise<CheckAnswer> {
    requireRequest(request);
    requireCallOptions(options);
    return this.#during(() => {
      const body = checkBodyOf(request, this.#parts.settings.agent, this.#parts.runs.nameOf(request));
      return this.#parts.checker.check(body, {
        isFresh: request.spanId === undefined && request.dryRun !== true,
        signal: options.signal,
      });
    });
  }

  async run<T>(action: Action, body: (op: Op) => T | Promise<T>, options: RunOptions = {}): Promise<T> {
    requireAction(action);
    requireRunOptions(options);
    return this.#during(() => this.#parts.runs.run(action, body, options));
  }

  guard<Args extends readonly unknown[], Result>(
    name: string,
    fn: (...args: Args) => Result,
    options: GuardOptions = {},
  ): (...args: Args) => Promise<Awaited<Result>> {
    return guarded((action, body, runOptions) => this.run(action, body, runOptions), name, fn, options);
  }

  async waitApproval(approvalId: string, options: CallOptions = {}): Promise<Approval> {
    requireCallOptions(options);
    const { approvals, settings } = this.#parts;
    return this.#during(() => approvals.wait(approvalId, settings.approvalMs, options));
  }

  async cancelApproval(approvalId: string, options: CallOptions = {}): Promise<boolean> {
    requireCallOptions(options);
    return this.#report(options.signal, `could not take back the request for approval ${approvalId}`, () =>
      this.#parts.calls.cancelApproval(approvalId),
    );
  }

  async complete(opId: string, outcome: Completion = {}): Promise<void> {
    requireCompletion(outcome);
    const { signal } = outcome;
    return this.#report(signal, `could not report operation ${opId} as complete`, () => {
      requireText(opId, 'opId');
      return this.#parts.calls.complete(opId, outcome);
    });
  }

  async recordUsage(usage: Usage, options: CallOptions = {}): Promise<UsageAnswer> {
    requireUsage(usage);
    requireCallOptions(options);
    return this.#report(
      options.signal,
      `could not record usage of ${usage.model ?? `${usage.costUsd} US dollars`}`,
      () => this.#parts.calls.recordUsage(usage),
    );
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #during<T>(work: () => Promise<T>): Promise<T> {
    // Operations under way may go on, so that their bodies can finish.
    if (this.#phase === 'closed' || (this.#phase === 'closing' && !this.#parts.runs.isWithin))
      throw new ClientClosedError();
    return this.#parts.underway.during(work);
  }

  /** When the caller leaves, only its wait ends: what was done is still reported. */
  #report<T>(signal: AbortSignal | undefined, failure: string, work: () => Promise<T>): Promise<T> {
    const reported = this.#during(work);
    return unlessAborted(signal, reported, () => {
      reported.catch((cause: unknown) => this.#parts.settings.onWarning(new Error(failure, { cause })));
    });
  }

  async #close(): Promise<void> {
    const { settings, underway, transport, reach, credential, checker, calls, approvals, control, settler, runs } =
      this.#parts;
    this.#phase = 'closing';
    settler.retryNow();
    await underway.idleWithin(settings.closeMs);
    const { count } = runs;
    runs.abortAll();
    if (count > 0) await underway.idleWithin(LAST_WORDS_MS);
    const sleeper = new Sleeper();
    await Promise.race([control.acknowledged(), sleeper.sleep(LAST_WORDS_MS)]);
    sleeper.end();
    this.#phase = 'closed';
    for (const part of [control, settler, checker, credential, calls, approvals, runs, reach, transport]) part.close();
  }
}
