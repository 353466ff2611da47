/** The interceptor of AGENT-HOOKS-0.1: contexts in, verdicts out (docs/agent-hooks.md). */

import { z } from 'zod';
import { isSameJson } from '../../core/base/mapping.ts';
import { ok, type Result } from '../../core/base/result.ts';
import {
  enforceOnArguments,
  firstAboutResult,
  type Obligation,
  SUPPORTED_OBLIGATIONS,
} from '../../core/check/obligations.ts';
import { reasonWithRemedy } from '../../core/check/remedy.ts';
import { explain, type Fault } from '../../core/fault.ts';
import { type Asking, GovernedCalls } from '../coding-agents/governed-call.ts';
import type { Holds } from '../coding-agents/holds.ts';
import { jsonOf } from '../engine/raw-body.ts';
import type { HttpReply, RawRequest, Route } from '../engine/route.ts';
import type { JsonObject } from '../proto/messages.ts';
import type { Caller } from '../rpc/handle.ts';
import { judge, recordRefusal, refuseOnRecord, type Verdict } from '../rpc/judge.ts';
import type { WirePorts } from '../rpc/ports.ts';
import { type Asker, askerOf, speakerFor, type Vouch, type Vouched, vouchedAgain } from '../rpc/speaker.ts';
import { textAt } from '../shared/input.ts';
import { agentContext, type Context, readContext } from './context.ts';

const PATH = '/v1/agent-hooks/intercept';
/** How long the end of a paused call is held: hosts wait for an interceptor as long as they are told to. */
const HOLD_MS = 50_000;

const warning = z.strictObject({ reason: z.string(), message: z.string() });
const evidence = z.strictObject({ verification_pointers: z.record(z.string(), z.string()) });
/** The verdict of the standard; it allows no other member. */
const verdict = z.union([
  z.strictObject({
    decision: z.literal('allow'),
    warnings: z.array(warning).optional(),
    evidence: evidence.optional(),
  }),
  z.strictObject({
    decision: z.literal('transform'),
    transform: z.strictObject({ path: z.literal('$target'), value: z.looseObject({}) }),
    warnings: z.array(warning).optional(),
    evidence: evidence.optional(),
  }),
  z.strictObject({
    decision: z.literal('deny'),
    reason: z.string(),
    message: z.string(),
    approval: z.strictObject({ id: z.string() }).optional(),
    evidence: evidence.optional(),
  }),
]);
type HookVerdict = z.output<typeof verdict>;

const ALLOW: HookVerdict = { decision: 'allow' };

class AgentHooksDoor {
  readonly #ports: WirePorts;
  readonly #calls: GovernedCalls;

  constructor(ports: WirePorts, holds: Holds) {
    this.#ports = ports;
    this.#calls = new GovernedCalls(ports, holds);
  }

  async answer(raw: RawRequest): Promise<HttpReply> {
    const { caller } = raw;
    const asked = await askerOf(this.#ports, raw);
    if (!asked.ok) return asked;
    const { bearer, claimed } = asked.value;
    const body = jsonOf(raw);
    const context = body.ok ? readContext(body.value) : body;
    if (!context.ok) {
      const resource = body.ok ? textAt(body.value, 'tool_call', 'name') : '';
      return refuseOnRecord(this.#ports, asked.value, { action: 'tool.call', resource }, context.fault);
    }
    const speaker = speakerFor(bearer, claimed);
    if (!speaker.ok) {
      const resource = 'tool' in context.value ? context.value.tool : '';
      const refused = { claimed, action: 'tool.call', resource, reason: explain(speaker.fault) };
      const recorded = await recordRefusal(this.#ports, bearer, refused);
      if (!recorded.ok) return recorded;
      return ok({ status: 200, body: { decision: 'deny', reason: 'credential', message: recorded.value.reason } });
    }
    const vouch = () => vouchedAgain(this.#ports, bearer, speaker.value, caller);
    const asker = { bearer, claimed, speaker: speaker.value, vouch, caller };
    const decided = await this.#decide(asker, context.value);
    return decided.ok ? ok({ status: 200, body: decided.value }) : decided;
  }

  async #decide(asker: HookAsker, context: Context): Promise<Result<HookVerdict, Fault>> {
    switch (context.point) {
      case 'before':
        return this.#before(asker, context);
      case 'after':
        return this.#after(asker, context);
      case 'other':
        return ok(ALLOW);
    }
  }

  async #before(asker: HookAsker, context: Before): Promise<Result<HookVerdict, Fault>> {
    const { tool, args, op } = context;
    const question = {
      action: 'tool.call',
      resource: tool,
      attributes: args,
      op,
      supportedObligations: SUPPORTED_OBLIGATIONS,
    };
    const { traceparent } = asker.caller;
    const judged = await judge(this.#ports, asker.bearer, asker.claimed, question, traceparent);
    if (!judged.ok) return judged;
    if (judged.value.decision !== 'allow') return ok(denialOf(judged.value));
    const allowed = allowOf(judged.value, args);
    // Nobody will run it: its operation has failed.
    if (allowed.decision === 'deny') await this.#end(asker, context, true);
    return ok(allowed);
  }

  async #after(asker: HookAsker, context: After): Promise<Result<HookVerdict, Fault>> {
    const ended = await this.#end(asker, context, context.hasFailed);
    if (!ended.ok) return ended;
    const { value } = ended;
    return ok(
      value.kind === 'completed' ? ALLOW : { decision: 'deny', reason: 'operation_state', message: value.reason },
    );
  }

  #end({ speaker, vouch, caller }: HookAsker, { tool, op }: Before | After, hasFailed: boolean) {
    const deadlineMs = performance.now() + HOLD_MS;
    const refuse: Asking['refuse'] = async (_subject, reason) => ok({ kind: 'deny', reason });
    const subjects = [{ action: 'tool.call', resource: tool, attributes: {} }];
    const call = { ...op, isNumbered: false, subjects, input: {} };
    return this.#calls.complete({ speaker, vouch, caller, deadlineMs, refuse }, call, 0, hasFailed);
  }
}

type Before = Extract<Context, { point: 'before' }>;
type After = Extract<Context, { point: 'after' }>;

/** Who asks, and for whom. */
type HookAsker = Asker & {
  readonly speaker: Vouched;
  readonly vouch: Vouch;
  readonly caller: Caller;
};

/** Points to the audit entry and the operation. */
function evidenceOf({ auditId, opId }: Verdict): { readonly evidence?: z.output<typeof evidence> } {
  const pointers = {
    ...(auditId !== undefined && { audit_id: String(auditId) }),
    ...(opId !== undefined && { op_id: opId }),
  };
  return Object.keys(pointers).length === 0 ? {} : { evidence: { verification_pointers: pointers } };
}

function denialOf(verdict: Verdict): HookVerdict {
  const { decision, cause, reason, approvalId, remedy } = verdict;
  return {
    decision: 'deny',
    reason: decision === 'pending' ? 'approval' : (cause ?? 'rule'),
    message: reasonWithRemedy(reason, remedy),
    ...(decision === 'pending' && approvalId !== undefined && { approval: { id: approvalId } }),
    ...evidenceOf(verdict),
  };
}

function allowOf(verdict: Verdict, args: JsonObject): HookVerdict {
  const obligations = verdict.obligations.map(
    ({ id, type, properties }): Obligation => ({ id, type, properties: properties ?? {} }),
  );
  const evidence = evidenceOf(verdict);
  const deny = (message: string): HookVerdict => ({ decision: 'deny', reason: 'obligation', message, ...evidence });
  const ofResult = firstAboutResult(obligations);
  if (ofResult !== undefined) return deny(`obligation ${ofResult.id} is about the result, which is not sent back here`);
  const enforced = enforceOnArguments(args, obligations);
  if (!enforced.ok) return deny(enforced.problem);
  const notices = obligations.filter(({ type }) => type === 'notify');
  const warnings = notices.map(({ id, properties }) => ({ reason: id, message: String(properties.message ?? '') }));
  const more = { ...(warnings.length > 0 && { warnings }), ...evidence };
  return isSameJson(enforced.value, args)
    ? { decision: 'allow', ...more }
    : { decision: 'transform', transform: { path: '$target', value: enforced.value as JsonObject }, ...more };
}

export function agentHooksRoutes({ holds }: { readonly holds: Holds }): readonly Route[] {
  let door: AgentHooksDoor | undefined;
  return [
    {
      method: 'post',
      path: PATH,
      access: 'agent',
      limit: 'none',
      summary: 'Answers an interceptor of AGENT-HOOKS-0.1 with its verdict',
      body: agentContext,
      answers: { 200: verdict },
      handle: (request, ports) => (door ??= new AgentHooksDoor(ports, holds)).answer(request),
    },
  ];
}
