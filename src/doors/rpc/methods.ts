/**
 * Every unary method of the services, once for both protocols: gRPC and Connect differ only in how a message
 * travels.
 */

import { ok, type Result } from '../../core/base/result.ts';
import type { Fault } from '../../core/fault.ts';
import type { Principal } from '../../core/identity/roles.ts';
import type { Origin } from '../../use-cases/use-cases.ts';
import { binaryBatch, type CheckBatch, jsonBatch } from '../proto/batch.ts';
import { binaryCodec } from '../proto/binary.ts';
import { jsonCodec } from '../proto/json.ts';
import type {
  BatchCheckActionsResponse,
  CheckActionRequest,
  CheckActionResponse,
  MessageName,
  Messages,
  MethodName,
} from '../proto/messages.ts';
import { MAX_BATCH_BYTES, MAX_MESSAGE_BYTES } from '../shared/limits.ts';
import { alsoUnconfirmed } from '../shared/unconfirmed.ts';
import { noteOf, priced, pricedUsd } from '../shared/usage.ts';
import { batchHandler } from './batch-checks.ts';
import { authenticateWriter, requireOperator, voucherPrincipal } from './bearer.ts';
import { waitWhileThere } from './departure.ts';
import type { Answer, Caller, Handle } from './handle.ts';
import type { WirePorts } from './ports.ts';
import {
  acknowledgementOf,
  checkCommandOf,
  checkResponseOf,
  completionOf,
  identityOf,
  ownApprovalOf,
  registrationOf,
  usageOf,
} from './requests.ts';

/** Reads a request, from either format. */
type Decoders<Request> = Readonly<Record<'json' | 'binary', (body: Buffer) => Result<Request, Fault>>>;

export type UnaryMethod = {
  /** `CheckAction`: no two methods of the services share one. */
  readonly name: string;
  readonly decode: Decoders<unknown>;
  readonly response: MessageName;
  readonly maxBytes: number;
  readonly handle: Handle<never, Messages[MessageName]>;
};

/** The methods whose messages are named after them, and decoded as the schema says. */
type SimpleName = Exclude<MethodName, 'BatchCheckActions'>;

type HandleOf<N extends SimpleName> = Handle<Messages[`${N}Request`], Messages[`${N}Response`]>;

const method = <N extends SimpleName>(name: N, handle: HandleOf<N>, maxBytes = MAX_MESSAGE_BYTES): UnaryMethod => ({
  name,
  decode: { json: jsonCodec(`${name}Request`).decode, binary: binaryCodec(`${name}Request`).decode },
  response: `${name}Response`,
  maxBytes,
  handle,
});

const batchMethod = (handle: Handle<CheckBatch, BatchCheckActionsResponse>): UnaryMethod => ({
  name: 'BatchCheckActions',
  decode: BATCH,
  response: 'BatchCheckActionsResponse',
  maxBytes: MAX_BATCH_BYTES,
  handle,
});

const BATCH: Decoders<CheckBatch> = { json: jsonBatch(), binary: binaryBatch() };

/** The table of methods. */
export const unaryMethods = (ports: WirePorts): readonly UnaryMethod[] => [
  method('CheckAction', checkHandler(ports)),
  batchMethod(batchHandler(ports)),
  method('RegisterAgent', register(ports)),
  method('DeregisterAgent', deregister(ports)),
  method('CompleteOp', complete(ports)),
  method('RecordUsage', recordUsage(ports)),
  method('AckOpControl', acknowledge(ports)),
  method('WaitApproval', waitApproval(ports), MAX_WAIT_BYTES),
  method('CancelApproval', cancelApproval(ports)),
];

/** Handles one check. Written without `async`: it is the hot path, and every await costs a turn. */
export function checkHandler(
  ports: WirePorts,
): (request: CheckActionRequest, authorization: string | undefined, origin?: Origin) => Answer<CheckActionResponse> {
  const check = (
    request: CheckActionRequest,
    principal: Principal | undefined,
    origin: Origin | undefined,
  ): Answer<CheckActionResponse> => {
    const command = checkCommandOf(request, principal);
    if (!command.ok) return Promise.resolve(command);
    return ports.link
      .ask(command.value, origin)
      .then(({ reply, auditId, home = ports.link.home }) =>
        reply.ok ? ok(checkResponseOf(command.value, request.correlationId, reply.value, auditId, home)) : reply,
      );
  };
  return (request, authorization, origin) => {
    // With a token, the token decides and the bearer is not even looked at (docs/spec.md, Checks).
    if (request.credentialToken !== '' || authorization === undefined) return check(request, undefined, origin);
    return authenticateWriter(ports, authorization, origin).then((principal) =>
      principal.ok ? check(request, principal.value, origin) : principal,
    );
  };
}

const register =
  (ports: WirePorts): HandleOf<'RegisterAgent'> =>
  async (request, authorization, caller) => {
    const principal = await requireOperator(ports, authorization, caller);
    if (!principal.ok) return principal;
    const registration = registrationOf(request, principal.value);
    if (!registration.ok) return registration;
    const { command, minted } = registration.value;
    const { reply } = await ports.link.ask(command);
    if (!reply.ok) return reply;
    const { agent, rotated } = reply.value;
    return alsoUnconfirmed(reply, ok({ agent: agent.identity, credentialToken: minted ?? '', rotated }));
  };

const deregister =
  (ports: WirePorts): HandleOf<'DeregisterAgent'> =>
  async (request, authorization, caller) => {
    const principal = await requireOperator(ports, authorization, caller);
    if (!principal.ok) return principal;
    const agent = identityOf(request.agent);
    if (!agent.ok) return agent;
    const { reply } = await ports.link.ask({
      type: 'deregister-agent',
      principal: principal.value,
      agent: agent.value,
    });
    return reply.ok ? alsoUnconfirmed(reply, ok({})) : reply;
  };

/** The end of an operation, as its agent reports it. */
const complete =
  (ports: WirePorts): HandleOf<'CompleteOp'> =>
  async (request, authorization, caller) => {
    const principal = await voucherPrincipal(ports, request.credentialToken, authorization, caller);
    if (!principal.ok) return principal;
    const completion = completionOf(request, principal.value);
    if (!completion.ok) return completion;
    const { command, usage } = completion.value;
    // Money first: what was spent is a fact, whatever has become of the operation.
    const spent = usage === undefined ? undefined : await priced(ports.link, usage);
    if (spent?.ok === false) return spent;
    if (usage !== undefined) {
      const { reply } = await ports.link.ask({ ...usage, ...spent?.value });
      if (!reply.ok) return reply;
    }
    const { reply } = await ports.link.ask({ ...command, ...noteOf(spent?.value) });
    if (!reply.ok) return reply;
    return ok({ opId: reply.value.opId, opState: reply.value.state, costUsd: pricedUsd(spent?.value) });
  };

const recordUsage =
  (ports: WirePorts): HandleOf<'RecordUsage'> =>
  async (request, authorization, caller) => {
    const principal = await voucherPrincipal(ports, request.credentialToken, authorization, caller);
    if (!principal.ok) return principal;
    const usage = usageOf(request, principal.value);
    if (!usage.ok) return usage;
    const spent = await priced(ports.link, usage.value);
    if (!spent.ok) return spent;
    const { reply } = await ports.link.ask({ ...usage.value, ...spent.value });
    if (!reply.ok) return reply;
    const none = { tier: 'unspecified', period: 'unspecified' } as const;
    return ok({ ...none, ...reply.value, costUsd: pricedUsd(spent.value) });
  };

const acknowledge =
  (ports: WirePorts): HandleOf<'AckOpControl'> =>
  async (request, authorization, caller) => {
    const principal = await voucherPrincipal(ports, request.credentialToken, authorization, caller);
    if (!principal.ok) return principal;
    const command = acknowledgementOf(request, principal.value);
    if (!command.ok) return command;
    const { reply } = await ports.link.ask(command.value);
    return reply.ok ? ok({}) : reply;
  };

/** The message is held for as long as its call: it has nothing but names and a token. */
const MAX_WAIT_BYTES = 16 * 1024;
/** How long a call waits that has no deadline of its own, and the longest that any waits. */
const MAX_WAIT_MS = 60_000;

/** Somewhat less than the caller waits, so that the state so far still reaches it. */
export const waitMsOf = ({ timeoutMs = MAX_WAIT_MS }: Caller): number =>
  Math.max(0, Math.min(MAX_WAIT_MS, timeoutMs - Math.min(1_000, Math.max(50, timeoutMs / 5))));

const waitApproval =
  (ports: WirePorts): HandleOf<'WaitApproval'> =>
  async (request, authorization, caller) => {
    const principal = await voucherPrincipal(ports, request.credentialToken, authorization, caller);
    if (!principal.ok) return principal;
    const asked = ownApprovalOf(request, principal.value);
    if (!asked.ok) return asked;
    const { id, ...reader } = asked.value;
    const wait = { reader, principal: reader.principal, id, waitMs: waitMsOf(caller) };
    const waited = await waitWhileThere(ports.link, caller, wait);
    if (!waited.ok) return waited;
    const { state, decisions, cancelReason, expiresAtMs } = waited.value;
    const reason = cancelReason ?? decisions.at(-1)?.reason ?? '';
    return ok({ approvalId: id, state, reason, expiresAt: expiresAtMs });
  };

const cancelApproval =
  (ports: WirePorts): HandleOf<'CancelApproval'> =>
  async (request, authorization, caller) => {
    const principal = await voucherPrincipal(ports, request.credentialToken, authorization, caller);
    if (!principal.ok) return principal;
    const asked = ownApprovalOf(request, principal.value);
    if (!asked.ok) return asked;
    const { reply } = await ports.link.ask({ type: 'cancel-own-approval', ...asked.value });
    if (reply.ok) return ok({ approvalId: reply.value.id, state: reply.value.state });
    const { fault } = reply;
    // It is over already, and the answer says how.
    return fault.kind === 'invalid_transition' && 'approvalId' in fault
      ? ok({ approvalId: fault.approvalId, state: fault.from })
      : reply;
  };
