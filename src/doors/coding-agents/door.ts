/** Answers the hooks of coding agents: checks before a tool call, completions after it. */

import { isMapping, isSameJson } from '../../core/base/mapping.ts';
import { assert, fail, ok, type Result } from '../../core/base/result.ts';
import { enforceOnArguments, firstAboutResult } from '../../core/check/obligations.ts';
import { explain, type Fault, invalid } from '../../core/fault.ts';
import type { Caller } from '../rpc/handle.ts';
import { recordRefusal } from '../rpc/judge.ts';
import type { WirePorts } from '../rpc/ports.ts';
import { askerOf, speakerFor, vouchedAgain } from '../rpc/speaker.ts';
import { type Asking, type Decided, GovernedCalls, type Refuse } from './governed-call.ts';
import type { Holds } from './holds.ts';
import type { Answer, Fields, HookEvent, HookTool, Read, ToolEvent } from './tool.ts';

/** In seconds: how long the hook waits, as its settings say. */
const TIMEOUT_HEADER = 'x-svc-hook-timeout';

/** How much earlier a held answer leaves: one that comes late is none, and some agents then run the tool. */
const MARGIN_MS = 5_000;
/** As long as any agent waits that says nothing else. */
const MAX_TIMEOUT_SECS = 600;

export type HookRequest = {
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Result<unknown, Fault>;
  readonly caller: Caller;
};

export class HookDoor {
  readonly #ports: WirePorts;
  readonly #calls: GovernedCalls;

  constructor(ports: WirePorts, holds: Holds) {
    this.#ports = ports;
    this.#calls = new GovernedCalls(ports, holds);
  }

  /** The answer in the tool's own words. A fault is not one of them: it must not be sent with a status of success. */
  async answer(tool: HookTool, request: HookRequest): Promise<Result<Fields, Fault>> {
    const asker = await askerOf(this.#ports, request);
    if (!asker.ok) return asker;
    const { bearer, claimed } = asker.value;
    const { headers, body, caller } = request;
    // A refusal is recorded as denied: the agent may have tried something.
    const refuse: Refuse = async (subject, reason) => {
      const recorded = await recordRefusal(this.#ports, bearer, { claimed, ...subject, reason });
      return recorded.ok ? ok({ kind: 'deny', reason: recorded.value.reason }) : recorded;
    };
    const event = body.ok ? readEvent(tool, body.value) : body;
    const claim = claimIn(body);
    if (!event.ok) return faultAfter(await refuse(claim, explain(event.fault)), event.fault);
    const { value: told } = event;
    if (told.kind === 'notice') return ok({});
    const speaker = speakerFor(bearer, claimed);
    if (!speaker.ok) {
      const refused = await refuse(claim, explain(speaker.fault));
      return refused.ok ? ok(tool.answer(told, refused.value)) : refused;
    }
    const deadlineMs = performance.now() + waitMsOf(headers.get(TIMEOUT_HEADER), tool);
    const vouch = () => vouchedAgain(this.#ports, bearer, speaker.value, caller);
    const asking: Asking = { speaker: speaker.value, vouch, caller, deadlineMs, refuse };
    // Not awaited here: what has been read of the body goes with this call, and the answer may be held for long.
    return this.#answer(tool, asking, keptOf(told), claim);
  }

  async #answer(tool: HookTool, asking: Asking, event: ToolEvent, claim: Claim): Promise<Result<Fields, Fault>> {
    const answer = await (event.kind === 'before' ? this.#before(asking, event) : this.#after(asking, event));
    if (answer.ok) return ok(tool.answer(event, answer.value));
    // Such as a path with control characters, which no check takes.
    return answer.fault.kind === 'invalid_argument' && event.kind === 'before'
      ? faultAfter(await asking.refuse(claim, explain(answer.fault)), answer.fault)
      : answer;
  }

  async #before(
    asking: Asking,
    { call, isEditable, isOnly }: Extract<ToolEvent, { kind: 'before' }>,
  ): Promise<Result<Answer, Fault>> {
    const supported = isEditable ? ['redact', 'set', 'cap', 'notify'] : ['notify'];
    const decided = await Promise.all(call.subjects.map((_, n) => this.#calls.decide(asking, call, n, supported)));
    const problem = problemIn(decided);
    const edited = problem === undefined ? editedInput(call.input, decided) : undefined;
    const refusal = problem ?? (edited?.ok === false ? edited.refusal : undefined);
    // A call that is refused in part is refused as a whole: the operations that were allowed have failed.
    if (refusal !== undefined || isOnly)
      await Promise.all(
        decided.map((one, n) => {
          if (one.ok && one.value.kind === 'allow') return this.#calls.complete(asking, call, n, refusal !== undefined);
        }),
      );
    if (refusal !== undefined) return refusal;
    assert(edited?.ok === true, 'what is not refused is allowed');
    return ok({ kind: 'allow', input: edited.input });
  }

  async #after(
    asking: Asking,
    { call, hasFailed }: Extract<ToolEvent, { kind: 'after' }>,
  ): Promise<Result<Answer, Fault>> {
    const completed = await Promise.all(call.subjects.map((_, n) => this.#calls.complete(asking, call, n, hasFailed)));
    for (const one of completed) {
      if (!one.ok) return one;
      if (one.value.kind === 'stop') return ok(one.value);
    }
    return ok({ kind: 'allow', input: undefined });
  }
}

/** The fault that a refusal was recorded for, or the one that kept it from being recorded. */
const faultAfter = (recorded: Result<unknown, Fault>, fault: Fault): Result<never, Fault> =>
  recorded.ok ? fail(fault) : recorded;

/** Without the arguments, where no answer can change them. */
function keptOf(event: ToolEvent): ToolEvent {
  const isKept = event.kind === 'before' && event.isEditable;
  return isKept ? event : { ...event, call: { ...event.call, input: {} } };
}

type Claim = { readonly action: string; readonly resource: string };

/** Returns the legible parts of a call that was not understood. */
function claimIn(body: Result<unknown, Fault>): Claim {
  const { tool_name: tool, toolName = tool } = body.ok && isMapping(body.value) ? body.value : {};
  return { action: 'tool.call', resource: typeof toolName === 'string' ? toolName : '' };
}

const readEvent = (tool: HookTool, body: unknown): Read<HookEvent> =>
  isMapping(body) ? tool.read(body) : invalid('body', 'must be a JSON object');

/** How long an answer may be held. */
function waitMsOf(timeout: string | undefined, tool: HookTool): number {
  const given = timeout !== undefined && /^\d{1,6}$/.test(timeout) ? Number(timeout) : tool.timeoutSecs;
  const timeoutMs = Math.min(Math.max(given, 1), MAX_TIMEOUT_SECS) * 1000;
  return Math.max(timeoutMs - MARGIN_MS, timeoutMs / 2);
}

/** The first error or denial. An operator's stop comes before other denials, since it is more than one. */
function problemIn(
  decided: readonly Result<Decided, Fault>[],
): Result<Exclude<Answer, { kind: 'allow' }>, Fault> | undefined {
  let denial: Exclude<Answer, { kind: 'allow' }> | undefined;
  for (const one of decided) {
    if (!one.ok) return one;
    const { value } = one;
    if (value.kind === 'allow') continue;
    if (denial === undefined || (denial.kind === 'deny' && value.kind === 'stop'))
      denial = { kind: value.kind, reason: value.reason };
  }
  return denial === undefined ? undefined : ok(denial);
}

type Edited =
  | { readonly ok: true; readonly input: Fields | undefined }
  | { readonly ok: false; readonly refusal: Result<Answer, Fault> };

/** The arguments as obligations change them; undefined where they stay. */
function editedInput(input: Fields, decided: readonly Result<Decided, Fault>[]): Edited {
  const obligations = decided.flatMap((one) => (one.ok && one.value.kind === 'allow' ? one.value.obligations : []));
  if (obligations.length === 0) return { ok: true, input: undefined };
  const deny = (problem: string): Edited => ({ ok: false, refusal: ok({ kind: 'deny', reason: problem }) });
  const ofResult = firstAboutResult(obligations);
  if (ofResult !== undefined) return deny(`obligation ${ofResult.id} is about the result, which a hook cannot change`);
  const enforced = enforceOnArguments(input, obligations);
  if (!enforced.ok) return deny(enforced.problem);
  return { ok: true, input: isSameJson(enforced.value, input) ? undefined : enforced.value };
}
