/**
 * A request of an agent, from its check to its answer: an operation at the gateway that operators see, pause and
 * terminate. A pause or an end that comes before its result holds the result back.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { isMapping } from '../core/base/mapping.ts';
import { enforceOnArguments, enforceOnResult, type Obligation } from '../core/check/obligations.ts';
import type { Asked } from '../core/mcp/asked.ts';
import { decided, type Waiting } from './approvals.ts';
import type { Completions } from './completions.ts';
import { type Control, Ended } from './control.ts';
import { type Gateway, type OpName, type Outcome, UNREADABLE, type Verdict } from './gateway.ts';
import { type Answer, errorOf, type Fields, type Request, RPC_CODE, resultOf } from './json-rpc.ts';
import { type Changed, changedReason } from './lists.ts';
import type { Refusals } from './refusals.ts';
import type { Signals } from './signals.ts';
import { renamed, subjectOf } from './subjects.ts';
import type { Sent, Upstream } from './upstream.ts';

/** How often an operation is asked for its state where signals do not come by themselves. */
const POLL_MS = 1_000;
const PAUSED_POLL_MS = 500;
/** In the `_meta` of requests since 2026-07-28. */
const VERSION = 'io.modelcontextprotocol/protocolVersion';
const PROGRESS_MS = 10_000;

export type CallOptions = {
  readonly gateway: Gateway;
  readonly signals: Signals;
  readonly completions: Completions;
  readonly refusals: Refusals;
  readonly log: (line: string) => void;
  readonly request: Request;
  readonly asked: Asked;
  readonly upstream: Upstream;
  readonly op: OpName;
  readonly control: Control;
  /** Tools whose definition is not the pinned one. */
  readonly changed: () => Promise<Changed>;
  readonly progress: Waiting['progress'];
  readonly elicit: Waiting['elicit'];
  /** Called when the server has the request: from then on it reports progress under its token. */
  readonly onSent: (sent: Sent) => void;
};

/** Undefined when nobody waits for an answer any more. */
export async function governed(options: CallOptions): Promise<Answer | undefined> {
  const { control, asked, upstream, signals, op } = options;
  const opId = `${op.traceId}:${op.spanId}`;
  // Before it is asked for: an operator may be faster than the answer.
  signals.watch(opId, (signal) => obey(control, signal));
  try {
    const admission = admitted(options);
    // Asked for at the same time, after the check, which takes longer. Its end must not hide why there is no admission.
    const changed = asked.kind === 'tool' ? control.unlessEnded(inNextTick(options.changed)) : NOTHING_CHANGED;
    changed.catch(() => {});
    const verdict = await admission;
    if (verdict.cause === UNREADABLE) options.refusals.report(subjectOf(upstream.name, asked), verdict.reason);
    if (verdict.decision !== 'allow') return refusal(options, verdict.reason);
    return await new RunningCall(options, verdict.obligations).run(async () =>
      problemOf(await changed, upstream.name, asked.name),
    );
  } catch (error) {
    if (error instanceof Ended) return answerOfEnd(options, error);
    throw error;
  } finally {
    signals.unwatch(opId);
  }
}

const TERMINATED = 'an operator has terminated this call';

function obey(control: Control, signal: 'pause' | 'resume' | 'terminate'): void {
  if (signal === 'pause') control.pause();
  else if (signal === 'resume') control.resume();
  else control.end({ kind: 'terminated', reason: TERMINATED });
}

const NOTHING_CHANGED: Promise<Changed> = Promise.resolve({ tools: new Set() });

/** A request begun in this tick is sent before: node:http writes it in the tick after. */
const inNextTick = async <T>(work: () => Promise<T>): Promise<T> => {
  await new Promise<void>((resolve) => {
    process.nextTick(resolve);
  });
  return work();
};

const problemOf = (changed: Changed, server: string, tool: string): string | undefined => {
  if ('failure' in changed) return changed.failure;
  return changed.tools.has(tool) ? changedReason(server, tool) : undefined;
};

/** Tools answer with a result that the model reads; everything else with an error. */
function refusal({ request, asked }: CallOptions, reason: string): Answer {
  const meta = request.params?._meta;
  return asked.kind === 'tool' && request.method === 'tools/call'
    ? resultOf(request.id, {
        // Clients that send the version with each request expect results to say that they are whole.
        ...(isMapping(meta) && VERSION in meta ? { resultType: 'complete' } : {}),
        content: [{ type: 'text', text: `Denied: ${reason}` }],
        isError: true,
      })
    : errorOf(request.id, RPC_CODE.denied, `Denied: ${reason}`);
}

const answerOfEnd = (options: CallOptions, { ending }: Ended): Answer | undefined =>
  ending.kind === 'terminated' ? refusal(options, ending.reason) : undefined;

/** The decision of the gateway, and that of a person where one is needed. */
async function admitted(options: CallOptions): Promise<Verdict> {
  const { gateway, control, asked, upstream, op, completions } = options;
  const subject = subjectOf(upstream.name, asked);
  const check = async (): Promise<Verdict> => {
    const checking = gateway.check(subject, op);
    try {
      return await control.unlessEnded(checking);
    } catch (error) {
      // It may have been allowed for nobody.
      void checking.then((verdict) => {
        if (verdict.decision === 'allow') completions.report(op, { ok: false, error: String(error) });
      });
      throw error;
    }
  };
  const verdict = await check();
  if (verdict.decision !== 'pending') return verdict;
  const { progress, elicit } = options;
  return decided(verdict, { gateway, control, what: subject.resource, progress, elicit, checkAgain: check });
}

/** An operation that runs: it is ended at the gateway whatever becomes of the request. */
class RunningCall {
  readonly #options: CallOptions;
  readonly #obligations: readonly Obligation[];
  #isOver = false;

  constructor(options: CallOptions, obligations: readonly Obligation[]) {
    this.#options = options;
    this.#obligations = obligations;
  }

  /** `check` is the obstacle of a call that is allowed. */
  async run(check: () => Promise<string | undefined>): Promise<Answer | undefined> {
    const { control, completions, op, log } = this.#options;
    void this.#poll();
    try {
      for (const { type, properties } of this.#obligations)
        if (type === 'notify') log(`notice on ${this.#what}: ${String(properties.message)}`);
      const problem = await check();
      if (problem !== undefined) return await this.#refused(problem);
      return await this.#forwarded();
    } catch (error) {
      const ending = control.ending;
      if (ending?.kind !== 'terminated')
        completions.report(op, { ok: false, error: ending?.reason ?? 'the call failed in svc mcp' });
      throw error;
    } finally {
      this.#isOver = true;
    }
  }

  get #what(): string {
    const { upstream, asked } = this.#options;
    return `${upstream.name}/${asked.name}`;
  }

  async #refused(reason: string): Promise<Answer> {
    await this.#options.gateway.complete(this.#options.op, { ok: false, error: reason });
    return refusal(this.#options, reason);
  }

  async #forwarded(): Promise<Answer | undefined> {
    const { control, request, asked, upstream } = this.#options;
    const args = enforceOnArguments(asked.args, this.#obligations);
    if (!args.ok) return this.#refused(args.problem);
    await control.untilRunning();
    const sent = upstream.request(request.method, renamed(request, asked.name, args.value));
    this.#options.onSent(sent);
    let answer: Answer;
    try {
      answer = await control.unlessEnded(sent.answer);
    } catch (error) {
      upstream.cancel(sent, control.ending?.reason ?? 'the call has ended');
      throw error;
    }
    const outcome = outcomeOf(answer);
    const result = answer.result === undefined ? undefined : enforceOnResult(answer.result, this.#obligations);
    if (result?.ok === false) return this.#refused(result.problem);
    return this.#released({ ...answer, id: request.id, ...(result && { result: result.value }) }, outcome);
  }

  /**
   * The answer, held while the operation is paused. Pushed signals are known by now; otherwise it waits for the gateway
   * to take the end of the operation, which it does not while there is a pause.
   */
  async #released(answer: Answer, outcome: Outcome): Promise<Answer> {
    const { gateway, control, completions, op, progress, signals } = this.#options;
    await control.untilRunning();
    if (signals.isPushed) {
      completions.report(op, outcome);
      return answer;
    }
    let shownMs = performance.now();
    for (;;) {
      await control.untilRunning();
      const completion = await gateway.complete(op, outcome);
      switch (completion.kind) {
        case 'done':
          return answer;
        case 'lost':
          // The action is done and was allowed: its end is reported when the gateway can be asked again.
          completions.report(op, outcome);
          return answer;
        case 'over':
          if (completion.state !== 'terminated') return answer;
          return refusal(this.#options, TERMINATED);
        case 'paused':
          if (performance.now() - shownMs >= PROGRESS_MS) {
            shownMs = performance.now();
            progress?.(`${this.#what} is paused by an operator`);
          }
          await control.unlessEnded(sleep(PAUSED_POLL_MS));
      }
    }
  }

  /** Asks for the state of the operation while signals do not come by themselves, and shows that a pause holds it. */
  async #poll(): Promise<void> {
    const { control, signals, gateway, asked, upstream, op, progress } = this.#options;
    for (let beats = 1; ; beats += 1) {
      await sleep(POLL_MS, undefined, { ref: false });
      if (this.#isOver || control.ending !== undefined) return;
      if (control.isPaused && beats % (PROGRESS_MS / POLL_MS) === 0)
        progress?.(`${this.#what} is paused by an operator`);
      if (signals.isPushed) continue;
      const state = await gateway.stateOf(subjectOf(upstream.name, asked), op);
      if (state === 'paused') control.pause();
      else if (state === 'running') control.resume();
      else if (state === 'terminated' && !this.#isOver) obey(control, 'terminate');
    }
  }
}

/** Answers of servers are not logged: only that they failed, and how. */
function outcomeOf({ result, error }: Answer): Outcome {
  if (error !== undefined) return { ok: false, error: `the server answered with error ${error.code}` };
  return (result as Fields).isError === true ? { ok: false, error: 'the tool reported an error' } : { ok: true };
}
