/** Every unary method of the two services, once for both protocols: gRPC and Connect differ only in how a message travels. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { CheckCommand, Replies } from '../core/commands.ts';
import type { Fault } from '../core/fault.ts';
import { fail, ok, type Result } from '../core/result.ts';
import { refuseWithout, type Principal } from '../core/scope.ts';
import type { Recorded } from '../gateway/link.ts';
import { MAX_BATCH_BYTES, MAX_BATCH_ITEMS, MAX_MESSAGE_BYTES } from './limits.ts';
import type { WirePorts } from './ports.ts';
import { binaryBatch, jsonBatch, type Batch } from './proto/batch.ts';
import { binaryCodec } from './proto/binary.ts';
import { jsonCodec } from './proto/json.ts';
import type {
  AckOpControlRequest, BatchCheckActionsResponse, CheckActionRequest, CheckActionResponse, CompleteOpRequest,
  CompleteOpResponse, DeregisterAgentRequest, MessageName, Messages, RecordUsageRequest, RecordUsageResponse, RegisterAgentRequest,
  RegisterAgentResponse, StreamCheckActionsResponse,
} from './proto/messages.ts';
import { acknowledgementOf, checkCommandOf, checkResponseOf, completionOf, identityOf, registrationOf, undecided, usageOf } from './requests.ts';

type Answer<T> = Promise<Result<T, Fault>>;
/** `cancelled`, as grpc-js calls it: nobody reads the answer any more. The connection is gone, or the time for the answer is over. */
export type Caller = { readonly cancelled: boolean };
/** `authorization` is the header or metadata of that name, as it came. */
type Handle<Request, Response> = (request: Request, authorization: string | undefined, caller: Caller) => Answer<Response>;

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

const method = <Q extends MessageName, R extends MessageName>(
  name: string, request: Q, response: R, handle: Handle<Messages[Q], Messages[R]>,
): UnaryMethod => ({ name, decode: { json: jsonCodec(request).decode, binary: binaryCodec(request).decode }, response, maxBytes: MAX_MESSAGE_BYTES, handle });

const batchMethod = (handle: Handle<Batch, BatchCheckActionsResponse>): UnaryMethod =>
  ({ name: 'BatchCheckActions', decode: BATCH, response: 'BatchCheckActionsResponse', maxBytes: MAX_BATCH_BYTES, handle });

const BATCH: Decoders<Batch> = { json: jsonBatch(), binary: binaryBatch() };

/** The table of methods. */
export const unaryMethods = (ports: WirePorts): readonly UnaryMethod[] => [
  method('CheckAction', 'CheckActionRequest', 'CheckActionResponse', checkHandler(ports)),
  batchMethod(batchHandler(ports)),
  method('RegisterAgent', 'RegisterAgentRequest', 'RegisterAgentResponse', (request, authorization) => register(ports, request, authorization)),
  method('DeregisterAgent', 'DeregisterAgentRequest', 'DeregisterAgentResponse', (request, authorization) => deregister(ports, request, authorization)),
  method('CompleteOp', 'CompleteOpRequest', 'CompleteOpResponse', (request, authorization) => complete(ports, request, authorization)),
  method('RecordUsage', 'RecordUsageRequest', 'RecordUsageResponse', (request, authorization) => recordUsage(ports, request, authorization)),
  method('AckOpControl', 'AckOpControlRequest', 'AckOpControlResponse', (request, authorization) => acknowledge(ports, request, authorization)),
];

/** One check. Written without `async`: it is the hot path, and every await costs a turn. */
export function checkHandler(ports: WirePorts): (request: CheckActionRequest, authorization: string | undefined) => Answer<CheckActionResponse> {
  const check = (request: CheckActionRequest, principal: Principal | undefined): Answer<CheckActionResponse> => {
    const command = checkCommandOf(request, principal);
    if (!command.ok) return Promise.resolve(command);
    return ports.link.ask<'check'>(command.value).then(({ reply, auditId }) =>
      reply.ok ? ok(checkResponseOf(command.value, request.correlationId, reply.value, auditId)) : reply);
  };
  return (request, authorization) => {
    // With a token, the token decides and the bearer is not even looked at (contract: gRPC).
    if (request.credentialToken !== '' || authorization === undefined) return check(request, undefined);
    return writer(ports, authorization).then((principal) => (principal.ok ? check(request, principal.value) : principal));
  };
}

const TOO_MANY_LARGE = fail({ kind: 'overloaded', retryAfterSecs: 1, what: 'the number of large batches' } as const);

function batchHandler(ports: WirePorts): Handle<Batch, BatchCheckActionsResponse> {
  return async (batch, authorization, caller) => {
    const [readFirst, ...rest] = batch.slices;
    if (readFirst === undefined) return fail({ kind: 'invalid_argument', field: 'requests', problem: `must have 1 to ${MAX_BATCH_ITEMS} items` });
    const first = readFirst();
    if (!first.ok) return first;
    if (rest.length === 0) return answerBatch(ports, [first.value], authorization, caller);
    const orgId = await orgBehind(ports, first.value[0]!, authorization);
    if (!orgId.ok) return orgId;
    return ports.largeBatches.run(orgId.value, async () => {
      const slices = [first.value];
      for (const read of rest) {
        await nextTurn();
        if (caller.cancelled) return UNREAD;
        const slice = read();
        if (!slice.ok) return slice;
        slices.push(slice.value);
      }
      return answerBatch(ports, slices, authorization, caller);
    }) ?? TOO_MANY_LARGE;
  };
}

/** The org whose turn a batch takes, by its first check; undefined where the credential of that does not hold. */
async function orgBehind(ports: WirePorts, request: CheckActionRequest, authorization: string | undefined): Answer<string | undefined> {
  const principal = await voucherPrincipal(ports, request.credentialToken, authorization);
  if (!principal.ok) return principal;
  const command = checkCommandOf(request, principal.value);
  if (!command.ok) return atItem(command.fault, 0);
  const { agent, credential } = command.value;
  if (principal.value !== undefined) return ok(principal.value.orgId ?? agent.orgId);
  if (credential === undefined) return ok(undefined);
  const { reply } = await ports.link.ask<'recognize-agent'>({ type: 'recognize-agent', agent, credential });
  return reply.ok ? ok(reply.value.isIts ? agent.orgId : undefined) : reply;
}

/** Ends a batch whose caller has gone: nobody reads it. */
const UNREAD = fail({ kind: 'internal' } as const);

async function answerBatch(ports: WirePorts, slices: readonly (readonly CheckActionRequest[])[], authorization: string | undefined, caller: Caller): Answer<BatchCheckActionsResponse> {
  const requests = slices.length === 1 ? slices[0]! : slices.flat();
  const isBearerNeeded = authorization !== undefined && requests.some(({ credentialToken }) => credentialToken === '');
  const principal = isBearerNeeded ? await writer(ports, authorization) : ok(undefined);
  if (!principal.ok) return principal;
  // Every item is validated before the first is asked, so a malformed batch has no effect at all.
  const commands: CheckCommand[] = [];
  for (const [index, request] of requests.entries()) {
    const command = checkCommandOf(request, principal.value);
    if (!command.ok) return atItem(command.fault, index);
    commands.push(command.value);
  }
  const answers: Recorded<Replies['check']>[] = [];
  for (const { length } of slices) {
    const answered = await askTogether(ports, commands.slice(answers.length, answers.length + length), caller);
    if (answered === undefined) return UNREAD;
    answers.push(...answered);
  }
  return respondToBatch(requests, commands, answers);
}

/** While this many requests wait, a batch asks for a piece only once the one before is answered, so that others come in between. */
const BUSY = 1_000;
/** In checks. */
const PIECE = 128;

/** Undefined when the caller has gone meanwhile: what was asked is decided, and stands. */
async function askTogether({ link }: WirePorts, commands: readonly CheckCommand[], caller: Caller): Promise<readonly Recorded<Replies['check']>[] | undefined> {
  const asked: Promise<readonly Recorded<Replies['check']>[]>[] = [];
  for (let from = 0; from < commands.length; from += PIECE) {
    if (link.pending >= BUSY) await asked.at(-1);
    if (caller.cancelled) return undefined;
    asked.push(Promise.all(commands.slice(from, from + PIECE).map((command) => link.ask<'check'>(command))));
  }
  return (await Promise.all(asked)).flat();
}

function respondToBatch(requests: readonly CheckActionRequest[], commands: readonly CheckCommand[], answers: readonly Recorded<Replies['check']>[]): Result<BatchCheckActionsResponse, Fault> {
  const first = answers[0]?.reply;
  if (first?.ok === false && answers.every(({ reply }) => !reply.ok)) return first;
  const responses = answers.map(({ reply, auditId }, index): StreamCheckActionsResponse => {
    const correlationId = requests[index]?.correlationId ?? '';
    return reply.ok ? checkResponseOf(commands[index] as CheckCommand, correlationId, reply.value, auditId) : undecided(correlationId, reply.fault);
  });
  return ok({ responses });
}

const atItem = (fault: Fault, index: number): { readonly ok: false; readonly fault: Fault } =>
  fail(fault.kind === 'invalid_argument' ? { ...fault, field: `requests[${index}].${fault.field}` } : fault);

async function register(ports: WirePorts, request: RegisterAgentRequest, authorization: string | undefined): Answer<RegisterAgentResponse> {
  const principal = await requireOperator(ports, authorization);
  if (!principal.ok) return principal;
  const registration = registrationOf(request, principal.value);
  if (!registration.ok) return registration;
  const { command, minted } = registration.value;
  const { reply } = await ports.link.ask<'register-agent'>(command);
  return reply.ok ? ok({ agent: reply.value.agent.identity, credentialToken: minted ?? '', rotated: reply.value.rotated }) : reply;
}

async function deregister(ports: WirePorts, request: DeregisterAgentRequest, authorization: string | undefined): Answer<Messages['DeregisterAgentResponse']> {
  const principal = await requireOperator(ports, authorization);
  if (!principal.ok) return principal;
  const agent = identityOf(request.agent);
  if (!agent.ok) return agent;
  const { reply } = await ports.link.ask<'deregister-agent'>({ type: 'deregister-agent', principal: principal.value, agent: agent.value });
  return reply.ok ? ok({}) : reply;
}

async function complete(ports: WirePorts, request: CompleteOpRequest, authorization: string | undefined): Answer<CompleteOpResponse> {
  const principal = await voucherPrincipal(ports, request.credentialToken, authorization);
  if (!principal.ok) return principal;
  const completion = completionOf(request, principal.value);
  if (!completion.ok) return completion;
  const { command, usage } = completion.value;
  // Money first: what was spent is a fact, whatever has become of the operation.
  if (usage !== undefined) {
    const { reply } = await ports.link.ask<'record-usage'>(usage);
    if (!reply.ok) return reply;
  }
  const { reply } = await ports.link.ask<'complete-op'>(command);
  return reply.ok ? ok({ opId: reply.value.opId, opState: reply.value.state }) : reply;
}

async function recordUsage(ports: WirePorts, request: RecordUsageRequest, authorization: string | undefined): Answer<RecordUsageResponse> {
  const principal = await voucherPrincipal(ports, request.credentialToken, authorization);
  if (!principal.ok) return principal;
  const usage = usageOf(request, principal.value);
  if (!usage.ok) return usage;
  const { reply } = await ports.link.ask<'record-usage'>(usage.value);
  if (!reply.ok) return reply;
  return ok(reply.value.status === 'ok' ? { status: 'ok', tier: 'unspecified', period: 'unspecified' } : reply.value);
}

async function acknowledge(ports: WirePorts, request: AckOpControlRequest, authorization: string | undefined): Answer<Messages['AckOpControlResponse']> {
  const principal = await voucherPrincipal(ports, request.credentialToken, authorization);
  if (!principal.ok) return principal;
  const command = acknowledgementOf(request, principal.value);
  if (!command.ok) return command;
  const { reply } = await ports.link.ask<'ack-signal'>(command.value);
  return reply.ok ? ok({}) : reply;
}

/** The bearer that vouches for an agent which presents no token of its own; undefined when there is none either. */
export const voucherPrincipal = (ports: WirePorts, credentialToken: string, authorization: string | undefined): Answer<Principal | undefined> =>
  credentialToken !== '' || authorization === undefined ? Promise.resolve(ok(undefined)) : writer(ports, authorization);

/**
 * The bearer of a call that the HTTP API has too: it counts against the same limit, or the limit would be none (contract: Rate
 * limits). The agents' own calls, which come as often as checks, do not.
 */
async function requireOperator(ports: WirePorts, authorization: string | undefined): Answer<Principal> {
  if (authorization === undefined) return fail({ kind: 'unauthenticated', detail: 'send an API key or a token as bearer in the authorization metadata' });
  const principal = await writer(ports, authorization);
  if (!principal.ok) return principal;
  const permit = await ports.link.call('takePermit', { limit: 'credential', key: principal.value.subject });
  return permit.ok ? principal : permit;
}

const BEARER = /^bearer +(\S+)$/i;

async function writer(ports: WirePorts, authorization: string): Answer<Principal> {
  const bearer = BEARER.exec(authorization)?.[1];
  if (bearer === undefined) return fail({ kind: 'unauthenticated', detail: 'the authorization must be the word Bearer and a credential' });
  const principal = await ports.authenticate(bearer);
  return principal.ok ? refuseWithout('write', principal.value) ?? principal : principal;
}
