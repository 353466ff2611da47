/** BatchCheckActions: many checks in one message, asked in pieces if they are large or many requests wait. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { fail, ok, type Result } from '../../core/base/result.ts';
import type { CheckCommand, Replies } from '../../core/commands.ts';
import { type Fault, invalid } from '../../core/fault.ts';
import type { Origin, Recorded } from '../../use-cases/use-cases.ts';
import type { CheckBatch } from '../proto/batch.ts';
import type { BatchCheckActionsResponse, CheckActionRequest, StreamCheckActionsResponse } from '../proto/messages.ts';
import { MAX_BATCH_ITEMS } from '../shared/limits.ts';
import { authenticateWriter, voucherPrincipal } from './bearer.ts';
import type { Answer, Caller, Handle } from './handle.ts';
import type { WirePorts } from './ports.ts';
import { checkCommandOf, checkResponseOf, undecided } from './requests.ts';

const TOO_MANY_LARGE = fail({ kind: 'overloaded', retryAfterSecs: 1, what: 'the number of large batches' } as const);

export function batchHandler(ports: WirePorts): Handle<CheckBatch, BatchCheckActionsResponse> {
  return async (batch, authorization, caller) => {
    const [readFirst, ...rest] = batch.slices;
    if (readFirst === undefined) return invalid('requests', `must have 1 to ${MAX_BATCH_ITEMS} items`);
    const first = readFirst();
    if (!first.ok) return first;
    if (rest.length === 0) return answerBatch(ports, [first.value], authorization, caller);
    const orgId = await orgBehind(ports, first.value[0]!, authorization, caller);
    if (!orgId.ok) return orgId;
    return (
      ports.largeBatches.run(orgId.value, async () => {
        const slices = [first.value];
        for (const read of rest) {
          await nextTurn();
          if (caller.cancelled) return UNREAD;
          const slice = read();
          if (!slice.ok) return slice;
          slices.push(slice.value);
        }
        return answerBatch(ports, slices, authorization, caller);
      }) ?? TOO_MANY_LARGE
    );
  };
}

/**
 * The org whose turn a batch takes, determined by its first check; undefined if that check's credential is not known to
 * be valid.
 */
export async function orgBehind(
  ports: WirePorts,
  request: CheckActionRequest,
  authorization: string | undefined,
  origin?: Origin,
): Answer<string | undefined> {
  const principal = await voucherPrincipal(ports, request.credentialToken, authorization, origin);
  if (!principal.ok) return principal;
  const command = checkCommandOf(request, principal.value);
  if (!command.ok) return atItem(command.fault, 0);
  const { agent, credential } = command.value;
  if (principal.value !== undefined) return ok(principal.value.orgId ?? agent.orgId);
  if (credential === undefined) return ok(undefined);
  const { reply } = await ports.link.ask({ type: 'recognize-agent', agent, credential });
  return reply.ok ? ok(reply.value.isIts ? agent.orgId : undefined) : reply;
}

/** Ends a batch whose caller has gone: nobody reads it. */
const UNREAD = fail({ kind: 'internal' } as const);

async function answerBatch(
  ports: WirePorts,
  slices: readonly (readonly CheckActionRequest[])[],
  authorization: string | undefined,
  caller: Caller,
): Answer<BatchCheckActionsResponse> {
  const requests = slices.length === 1 ? slices[0]! : slices.flat();
  const isBearerNeeded = authorization !== undefined && requests.some(({ credentialToken }) => credentialToken === '');
  const principal = isBearerNeeded ? await authenticateWriter(ports, authorization, caller) : ok(undefined);
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
    const answered = await checkTogether(ports, commands.slice(answers.length, answers.length + length), caller);
    if (answered === undefined) return UNREAD;
    answers.push(...answered);
  }
  return respondToBatch(ports, requests, commands, answers);
}

/**
 * While this many requests wait, a batch sends a piece only once the one before it is answered, so that others come in
 * between.
 */
const BUSY = 1_000;
/** In checks. */
const PIECE = 128;

/** Undefined when the caller has gone meanwhile: the checks sent so far are decided, and remain so. */
async function checkTogether(
  { link }: WirePorts,
  commands: readonly CheckCommand[],
  caller: Caller,
): Promise<readonly Recorded<Replies['check']>[] | undefined> {
  const pending: Promise<readonly Recorded<Replies['check']>[]>[] = [];
  for (let from = 0; from < commands.length; from += PIECE) {
    if (link.pending >= BUSY) await pending.at(-1);
    if (caller.cancelled) return undefined;
    pending.push(Promise.all(commands.slice(from, from + PIECE).map((command) => link.ask(command, caller))));
  }
  return (await Promise.all(pending)).flat();
}

function respondToBatch(
  { link }: WirePorts,
  requests: readonly CheckActionRequest[],
  commands: readonly CheckCommand[],
  answers: readonly Recorded<Replies['check']>[],
): Result<BatchCheckActionsResponse, Fault> {
  const first = answers[0]?.reply;
  if (first?.ok === false && answers.every(({ reply }) => !reply.ok)) return first;
  const responses = answers.map(({ reply, auditId, home = link.home }, index): StreamCheckActionsResponse => {
    const correlationId = requests[index]?.correlationId ?? '';
    return reply.ok
      ? checkResponseOf(commands[index]!, correlationId, reply.value, auditId, home)
      : undecided(correlationId, reply.fault);
  });
  return ok({ responses });
}

const atItem = (fault: Fault, index: number): Result<never, Fault> =>
  fail(fault.kind === 'invalid_argument' ? { ...fault, field: `requests[${index}].${fault.field}` } : fault);
