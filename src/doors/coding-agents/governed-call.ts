/** Checks and completes one subject of a tool call as any agent would. */
import type { OpId } from '../../core/base/ids.ts';
import { ok, type Result } from '../../core/base/result.ts';
import type { Obligation } from '../../core/check/obligations.ts';
import { reasonWithRemedy } from '../../core/check/remedy.ts';
import type { CheckAnswer } from '../../core/commands.ts';
import type { Fault } from '../../core/fault.ts';
import type { OpView } from '../../core/ops/op-view.ts';
import { waitWhileThere } from '../rpc/departure.ts';
import type { Caller } from '../rpc/handle.ts';
import { waitMsOf } from '../rpc/methods.ts';
import type { WirePorts } from '../rpc/ports.ts';
import { doorCheckOf } from '../rpc/requests.ts';
import type { Vouch, Vouched } from '../rpc/speaker.ts';
import { isLongerThan, MAX_RESOURCE_BYTES } from '../shared/limits.ts';
import type { Holds } from './holds.ts';
import type { Subject, ToolCall } from './tool.ts';

export type Decided =
  | { readonly kind: 'allow'; readonly spanId: string; readonly obligations: readonly Obligation[] }
  | { readonly kind: 'deny' | 'stop'; readonly reason: string };

export type Completed = { readonly kind: 'completed' } | { readonly kind: 'stop'; readonly reason: string };

/** Records a denial of what cannot be asked. */
export type Refuse = (
  subject: Pick<Subject, 'action' | 'resource'>,
  reason: string,
) => Promise<Result<{ readonly kind: 'deny'; readonly reason: string }, Fault>>;

/** Who asks, and how long the agent waits. */
export type Asking = {
  readonly speaker: Vouched;
  /** Renews the caller's authority: a key may end while an answer is held. */
  readonly vouch: Vouch;
  readonly caller: Caller;
  /** By `performance.now()`: the answer must have left by then. */
  readonly deadlineMs: number;
  readonly refuse: Refuse;
};

/** Equal calls within the minute or so for which ended operations are kept. */
const MAX_NUMBER = 64;
/** With less time than this nobody can be waited for. */
const LEAST_WAIT_MS = 100;

const TERMINATED = 'an operator has terminated the operation';
const PAUSED = 'an operator has paused the operation; wait until it is resumed';

export class GovernedCalls {
  readonly #ports: WirePorts;
  readonly #holds: Holds;

  constructor(ports: WirePorts, holds: Holds) {
    this.#ports = ports;
    this.#holds = holds;
  }

  /** Decides one subject. `supported`: the types of obligations that the answer can meet. */
  async decide(
    asking: Asking,
    call: ToolCall,
    index: number,
    supported: readonly string[],
  ): Promise<Result<Decided, Fault>> {
    const subject = call.subjects[index]!;
    if (isLongerThan(subject.resource, MAX_RESOURCE_BYTES)) return asking.refuse(subject, tooLong(subject.resource));
    for (let number = 1; ; number += 1) {
      const spanId = spanOf(call, index, number);
      const checked = await this.#checkOnce(asking, { call, spanId, subject, supported });
      if (!checked.ok) return checked;
      const answer = checked.value;
      if (answer.decision === 'allow') return ok({ kind: 'allow', spanId, obligations: answer.obligations ?? [] });
      // The operation of an equal call before this one.
      if (call.isNumbered && number < MAX_NUMBER && isEnded(answer)) continue;
      return ok(denialOf(answer));
    }
  }

  /** Completes the operation of one subject after its call. Without one, as after a restart, there is nothing to do. */
  async complete(asking: Asking, call: ToolCall, index: number, hasFailed: boolean): Promise<Result<Completed, Fault>> {
    let stopped: Completed | undefined;
    for (let number = 1; number <= (call.isNumbered ? MAX_NUMBER : 1); number += 1) {
      const opId = `${call.traceId}:${spanOf(call, index, number)}` as OpId;
      const completed = await this.#completeOnce(asking, opId, hasFailed);
      if (completed.ok) return ok({ kind: 'completed' });
      const { fault } = completed;
      if (fault.kind === 'not_found') break;
      if (fault.kind !== 'invalid_transition') return completed;
      if (fault.from === 'paused') return ok({ kind: 'stop', reason: PAUSED });
      // Among equal calls that have ended, only the last is this one.
      stopped = fault.from === 'terminated' ? { kind: 'stop', reason: TERMINATED } : undefined;
    }
    return ok(stopped ?? { kind: 'completed' });
  }

  /** Repeats a check after a pause or an approval. Anything but an allow is a denial by then. */
  async #checkOnce(asking: Asking, { call, spanId, subject, supported }: CheckOf): Promise<Result<CheckAnswer, Fault>> {
    const { vouch, caller, deadlineMs } = asking;
    const { traceId } = call;
    const check = async (): Promise<Result<CheckAnswer, Fault>> => {
      const speaker = await vouch();
      if (!speaker.ok) return speaker;
      const { action, resource, attributes } = subject;
      const act = { traceId, spanId, action, resource, attributes, dryRun: false, supportedObligations: supported };
      const command = doorCheckOf(speaker.value, act);
      return command.ok ? (await this.#ports.link.ask(command.value, caller)).reply : command;
    };
    let answer = await check();
    if (!answer.ok || (!isPaused(answer.value) && answer.value.decision !== 'pending')) return answer;
    const bytes = bytesOf(call, subject);
    if (isPaused(answer.value)) {
      const opId = `${traceId}:${spanId}` as OpId;
      answer = await this.#holds.with(this.#ports, { ...asking, opId, bytes }, async (next) => {
        for (;;) {
          const again = await check();
          if (!again.ok || !isPaused(again.value) || (await next(deadlineMs)) === 'over') return again;
        }
      });
    }
    while (answer.ok && answer.value.decision === 'pending' && (await this.#isDecided(answer.value, asking, bytes)))
      answer = await check();
    return answer;
  }

  /** Waits for the decision. False when the time is over, or nobody waits or can wait for it. */
  async #isDecided({ approvalId }: CheckAnswer, asking: Asking, bytes: number): Promise<boolean> {
    const { speaker, vouch, caller, deadlineMs } = asking;
    let isOver = false;
    const leave = this.#holds.take({ speaker, bytes }, () => {
      isOver = true;
    });
    if (leave === undefined) return false;
    const waiting = (timeoutMs: number): Caller => ({
      address: caller.address,
      get cancelled() {
        return isOver || caller.cancelled;
      },
      timeoutMs,
    });
    try {
      for (let leftMs = msUntil(deadlineMs); leftMs > LEAST_WAIT_MS; leftMs = msUntil(deadlineMs)) {
        const waiter = waiting(leftMs);
        const vouched = await vouch();
        if (!vouched.ok || approvalId === undefined) return false;
        const { principal } = vouched.value;
        const wait = { reader: vouched.value, principal, id: approvalId, waitMs: waitMsOf(waiter) };
        const answer = await waitWhileThere(this.#ports.link, waiter, wait);
        if (!answer.ok || waiter.cancelled) return false;
        if (answer.value.state !== 'pending') return true;
      }
      return false;
    } finally {
      leave();
    }
  }

  async #completeOnce(asking: Asking, opId: OpId, hasFailed: boolean): Promise<Result<OpView, Fault>> {
    const end = hasFailed
      ? ({ outcome: 'failure', error: 'the tool failed' } as const)
      : ({ outcome: 'success', error: undefined } as const);
    const complete = async (): Promise<Result<OpView, Fault>> => {
      const speaker = await asking.vouch();
      if (!speaker.ok) return speaker;
      return (await this.#ports.link.ask({ type: 'complete-op', ...speaker.value, opId, ...end })).reply;
    };
    const first = await complete();
    if (!isHeld(first)) return first;
    return this.#holds.with(this.#ports, { ...asking, opId, bytes: 0 }, async (next) => {
      for (;;) {
        const again = await complete();
        if (!isHeld(again) || (await next(asking.deadlineMs)) === 'over') return again;
      }
    });
  }
}

/** Never cut to what fits: padding could then hide what a rule forbids. */
const tooLong = (resource: string): string =>
  `the resource has ${Buffer.byteLength(resource)} bytes, more than the ${MAX_RESOURCE_BYTES} that can be checked; use a shorter one`;

type CheckOf = {
  readonly call: ToolCall;
  readonly spanId: string;
  readonly subject: Subject;
  readonly supported: readonly string[];
};

/** Estimates the memory of a held call: the subject, and the arguments if the answer may change them. */
const bytesOf = ({ input, subjects }: ToolCall, subject: Subject): number =>
  sizeOf(subject) + Math.ceil(sizeOf(input) / subjects.length);

const sizeOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

const msUntil = (deadlineMs: number): number => deadlineMs - performance.now();

const isPaused = ({ decision, opState }: CheckAnswer): boolean => decision === 'deny' && opState === 'paused';

const isHeld = (completed: Result<unknown, Fault>): boolean =>
  !completed.ok && completed.fault.kind === 'invalid_transition' && completed.fault.from === 'paused';

/** A policy's denial terminates its own operation at once: only the cause tells that from one that ended before. */
const isEnded = ({ decision, cause, opState }: CheckAnswer): boolean =>
  decision === 'deny' && (opState === 'completing' || (cause === 'operation_state' && opState === 'terminated'));

function denialOf({ decision, reason, cause, opState, approvalId, remedy }: CheckAnswer): Decided {
  if (decision === 'pending')
    return { kind: 'deny', reason: `approval ${approvalId} is not decided yet; try again once it is. ${reason}` };
  const isStopped = cause === 'halt' || (cause === 'operation_state' && opState === 'terminated');
  return { kind: isStopped ? 'stop' : 'deny', reason: reasonWithRemedy(reason, remedy) };
}

/** The first of equal calls has the span alone; the others, and further files of one call, have numbers behind it. */
const spanOf = ({ spanId }: ToolCall, index: number, number: number): string =>
  `${spanId}${index === 0 ? '' : `.${index + 1}`}${number === 1 ? '' : `~${number}`}`;
