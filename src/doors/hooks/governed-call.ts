/** One subject of a tool call, asked for and completed as any agent would do it: by CheckAction and CompleteOp. */
import type { OpId } from '../../core/base/ids.ts';
import { assert, ok, type Result } from '../../core/base/result.ts';
import type { Fault } from '../../core/fault.ts';
import type { Obligation } from '../../core/obligations.ts';
import type {
  CheckActionRequest,
  CheckActionResponse,
  CompleteOpRequest,
  CompleteOpResponse,
  WaitApprovalRequest,
  WaitApprovalResponse,
} from '../proto/messages.ts';
import type { Caller, Handle } from '../rpc/handle.ts';
import { unaryMethods } from '../rpc/methods.ts';
import type { WirePorts } from '../rpc/ports.ts';
import type { Speaker } from '../rpc/speaker.ts';
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
  readonly speaker: Speaker;
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
  readonly #check: Handle<CheckActionRequest, CheckActionResponse>;
  readonly #complete: Handle<CompleteOpRequest, CompleteOpResponse>;
  /** Undefined while the gateway has no approvals. */
  readonly #waitApproval: Handle<WaitApprovalRequest, WaitApprovalResponse> | undefined;

  constructor(ports: WirePorts, holds: Holds) {
    this.#ports = ports;
    this.#holds = holds;
    const methods = unaryMethods(ports);
    const handleOf = <Q, R>(method: string) =>
      methods.find(({ name }) => name === method)?.handle as Handle<Q, R> | undefined;
    const check = handleOf<CheckActionRequest, CheckActionResponse>('CheckAction');
    const complete = handleOf<CompleteOpRequest, CompleteOpResponse>('CompleteOp');
    assert(check !== undefined && complete !== undefined, 'the table of methods has those of checks and completions');
    this.#check = check;
    this.#complete = complete;
    this.#waitApproval = handleOf('WaitApproval');
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
      if (answer.decision === 'allow')
        return ok({ kind: 'allow', spanId, obligations: answer.obligations.map(withProperties) });
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
      // Of equal calls that have ended, only the last is this one.
      stopped = fault.from === 'terminated' ? { kind: 'stop', reason: TERMINATED } : undefined;
    }
    return ok(stopped ?? { kind: 'completed' });
  }

  /** One check, repeated after a pause or an approval. Anything but an allow is a denial by then. */
  async #checkOnce(
    asking: Asking,
    { call, spanId, subject, supported }: CheckOf,
  ): Promise<Result<CheckActionResponse, Fault>> {
    const { speaker, caller, deadlineMs } = asking;
    const { agent, credentialToken, authorization } = speaker;
    const request: CheckActionRequest = {
      agent,
      credentialToken,
      traceId: call.traceId,
      spanId,
      ...subject,
      estimatedCostUsd: 0,
      caller: undefined,
      dryRun: false,
      correlationId: '',
      supportedObligations: supported,
      opHome: '',
    };
    const check = () => this.#check(request, authorization, caller);
    let answer = await check();
    if (!answer.ok || (!isPaused(answer.value) && answer.value.decision !== 'pending')) return answer;
    const bytes = bytesOf(call, subject);
    if (isPaused(answer.value)) {
      const opId = answer.value.opId as OpId;
      answer = await this.#holds.with(this.#ports, { speaker, opId, caller, bytes }, async (next) => {
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
  async #isDecided({ approvalId }: CheckActionResponse, asking: Asking, bytes: number): Promise<boolean> {
    const { speaker, caller, deadlineMs } = asking;
    let isOver = false;
    const leave = this.#holds.take({ speaker, bytes }, () => {
      isOver = true;
    });
    if (leave === undefined) return false;
    const { agent, credentialToken, authorization } = speaker;
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
        const answer = await this.#waitApproval?.({ agent, credentialToken, approvalId }, authorization, waiter);
        if (answer === undefined || !answer.ok || waiter.cancelled) return false;
        if (answer.value.state !== 'pending') return true;
      }
      return false;
    } finally {
      leave();
    }
  }

  async #completeOnce({ speaker, caller, deadlineMs }: Asking, opId: OpId, hasFailed: boolean) {
    const { agent, credentialToken, authorization } = speaker;
    const request: CompleteOpRequest = {
      agent,
      credentialToken,
      opId,
      costUsd: undefined,
      outcome: hasFailed ? 'failure' : 'success',
      error: hasFailed ? 'the tool failed' : '',
      opHome: '',
    };
    const complete = () => this.#complete(request, authorization, caller);
    const first = await complete();
    if (!isHeld(first)) return first;
    return this.#holds.with(this.#ports, { speaker, opId, caller, bytes: 0 }, async (next) => {
      for (;;) {
        const again = await complete();
        if (!isHeld(again) || (await next(deadlineMs)) === 'over') return again;
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

/** What is kept of the call while it is held: the subject, and the arguments where the answer may change them. */
const bytesOf = ({ input, subjects }: ToolCall, subject: Subject): number =>
  sizeOf(subject) + Math.ceil(sizeOf(input) / subjects.length);

const sizeOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

const msUntil = (deadlineMs: number): number => deadlineMs - performance.now();

const isPaused = ({ decision, opState }: CheckActionResponse): boolean => decision === 'deny' && opState === 'paused';

const isHeld = (completed: Result<unknown, Fault>): boolean =>
  !completed.ok && completed.fault.kind === 'invalid_transition' && completed.fault.from === 'paused';

/** A policy's denial terminates its own operation at once: only the cause tells that from one that ended before. */
const isEnded = ({ decision, cause, opState }: CheckActionResponse): boolean =>
  decision === 'deny' && (opState === 'completing' || (cause === 'operation_state' && opState === 'terminated'));

const withProperties = ({ id, type, properties }: CheckActionResponse['obligations'][number]): Obligation => ({
  id,
  type,
  properties: properties ?? {},
});

function denialOf({ decision, reason, cause, opState, approvalId }: CheckActionResponse): Decided {
  if (decision === 'pending')
    return { kind: 'deny', reason: `approval ${approvalId} is not decided yet; try again once it is. ${reason}` };
  const isStopped = cause === 'halt' || (cause === 'operation_state' && opState === 'terminated');
  return { kind: isStopped ? 'stop' : 'deny', reason };
}

/** The first of equal calls has the span alone; the others, and further files of one call, have numbers behind it. */
const spanOf = ({ spanId }: ToolCall, index: number, number: number): string =>
  `${spanId}${index === 0 ? '' : `.${index + 1}`}${number === 1 ? '' : `~${number}`}`;
