/** Operations: register, look at, and control (docs/spec.md, HTTP). */
import { z } from 'zod';
import { type OpId, usageIdOfCompletion } from '../../core/base/ids.ts';
import { fail, ok, type Result } from '../../core/base/result.ts';
import type { CommandOf, Replies } from '../../core/commands.ts';
import { type Fault, invalid } from '../../core/fault.ts';
import type { ControlTrigger } from '../../core/ops/op-state.ts';
import { OP_ENDS, OP_STATES } from '../../core/ops/op-state.ts';
import type { Link } from '../../use-cases/use-cases.ts';
import type { Authorized, HttpReply, Route } from '../engine/route.ts';
import { optional } from '../shared/input.ts';
import { isLongerThan, MAX_ERROR_BYTES } from '../shared/limits.ts';
import { unconfirmedHeaders } from '../shared/unconfirmed.ts';
import { noteOf, priced, readSpent, type Spent } from '../shared/usage.ts';
import {
  agentIdentity,
  type Listing,
  readGlobs,
  readNames,
  readOpHalves,
  readOpId,
  readWord,
  withBody,
  withListing,
} from './body.ts';
import { completedOpShape, opOrOps, opPage, opShape } from './shapes.ts';
import { costView, spentFields, spentOf } from './spent.ts';
import { opView, pageView } from './views.ts';

const registration = z.strictObject({
  op_id: optional(z.string().meta({ description: '`<trace_id>:<span_id>`; give either this or both halves' })),
  trace_id: optional(z.string()),
  span_id: optional(z.string()),
  agent: agentIdentity,
});

async function register({ principal, body }: Authorized<typeof registration>, link: Link): Promise<HttpReply> {
  const opId = opIdIn(body);
  if (!opId.ok) return opId;
  const { reply } = await link.ask({ type: 'register-op', principal, opId: opId.value, agent: body.agent });
  return reply.ok ? ok({ status: reply.value.created ? 201 : 200, body: opView(reply.value.op, link.home) }) : reply;
}

function opIdIn({ op_id, trace_id, span_id }: z.output<typeof registration>): Result<OpId, Fault> {
  if (op_id !== undefined) {
    if (trace_id === undefined && span_id === undefined) return readOpId(op_id, 'op_id');
    return invalid('op_id', 'send either op_id, or trace_id and span_id, not both');
  }
  if (trace_id === undefined || span_id === undefined)
    return invalid('op_id', 'is required; send either op_id, or trace_id and span_id');
  return readOpHalves(trace_id, span_id);
}

async function list(listing: Listing, link: Link, request: Authorized): Promise<HttpReply> {
  const state = readWord(request.query, 'state', OP_STATES);
  if (!state.ok) return state;
  const ended = readWord(request.query, 'ended', OP_ENDS);
  if (!ended.ok) return ended;
  const names = readNames(request.query, ['team_id', 'agent_id', 'policy', 'rule_id']);
  if (!names.ok) return names;
  const globs = readGlobs(request.query, ['action', 'resource']);
  if (!globs.ok) return globs;
  const { team_id: teamId, agent_id: agentId, policy, rule_id: ruleId } = names.value;
  const filter = { teamId, agentId, state: state.value, ...globs.value, policy, ruleId, ended: ended.value };
  const { reply } = await link.ask({ type: 'list-ops', ...filter, ...listing });
  if (!reply.ok) return reply;
  const { incomplete } = reply.value;
  const page = pageView('ops', reply.value, (op) => opView(op, link.home));
  return ok({ status: 200, body: incomplete === undefined ? page : { ...page, incomplete } });
}

/** An id is an org's own. For a credential that sees several orgs `org_id` says whose is meant. */
function readNamed({ principal, params, query }: Omit<Authorized, 'body'>) {
  const opId = readOpId(params.id ?? '');
  if (!opId.ok) return opId;
  const orgId = query.get('org_id') ?? undefined;
  return ok({ principal, opId: opId.value, orgId, home: query.get('op_home') ?? undefined });
}

const controlled = (reply: Replies['control-op'], link: Link): HttpReply =>
  reply.ok ? ok({ status: 200, body: opView(reply.value, link.home), headers: unconfirmedHeaders(reply) }) : reply;

async function get(request: Authorized, link: Link): Promise<HttpReply> {
  const named = readNamed(request);
  if (!named.ok) return named;
  const { reply } = await link.ask({ type: 'get-op', ...named.value });
  if (!reply.ok) return reply;
  const { others, ...first } = reply.value;
  if (others === undefined) return ok({ status: 200, body: opView(first, link.home) });
  return ok({ status: 200, body: { ops: [first, ...others].map((op) => opView(op, link.home)) } });
}

const OUTCOME = { OUTCOME_SUCCESS: 'success', OUTCOME_FAILURE: 'failure' } as const;
const OUTCOME_RULE = `must be one of ${Object.keys(OUTCOME).join(', ')}`;
const completion = z.strictObject({
  ...spentFields,
  outcome: optional(
    z.enum(['OUTCOME_SUCCESS', 'OUTCOME_FAILURE'], OUTCOME_RULE).meta({ description: 'How the action ended.' }),
  ),
  error: optional(
    z
      .string()
      .refine((text) => !isLongerThan(text, MAX_ERROR_BYTES), `must be at most ${MAX_ERROR_BYTES} bytes`)
      .meta({ description: 'The error of a failure; at most 1,024 bytes.' }),
  ),
});

async function complete(request: Authorized<typeof completion>, link: Link): Promise<HttpReply> {
  const named = readNamed(request);
  if (!named.ok) return named;
  const { body } = request;
  const outcome = body.outcome === undefined ? undefined : OUTCOME[body.outcome];
  const error = body.error === '' ? undefined : body.error;
  if (error !== undefined && outcome !== 'failure') return invalid('error', 'is only for OUTCOME_FAILURE');
  const spent = await recordSpent(request, named.value, link);
  if (!spent.ok) return spent;
  const { reply } = await link.ask({
    type: 'control-op',
    ...named.value,
    trigger: 'complete',
    outcome,
    error,
    ...noteOf(spent.value),
  });
  const answer = controlled(reply, link);
  if (!answer.ok || spent.value === undefined) return answer;
  return ok({ ...answer.value, body: { ...(answer.value.body as object), ...costView(spent.value) } });
}

/** Money first: what was spent is a fact, whatever becomes of the operation. It counts for the agent that has it. */
async function recordSpent(
  { principal, body }: Authorized<typeof completion>,
  named: Pick<CommandOf<'get-op'>, 'principal' | 'opId' | 'orgId' | 'home'>,
  link: Link,
): Promise<Result<Spent | undefined, Fault>> {
  const read = readSpent(spentOf(body));
  if (!read.ok || read.value === undefined) return read;
  const spent = await priced(link, read.value);
  if (!spent.ok) return spent;
  const { reply: found } = await link.ask({ type: 'get-op', ...named });
  if (!found.ok) return found;
  const { agent, opId, others } = found.value;
  if (others !== undefined)
    return fail({
      kind: 'ambiguous',
      opId,
      orgIds: [agent, ...others.map((op) => op.agent)].map((each) => each.orgId),
    });
  const { reply } = await link.ask({
    type: 'record-usage',
    principal,
    credential: undefined,
    agent,
    ...spent.value,
    opId,
    usageId: usageIdOfCompletion(opId),
    home: named.home,
  });
  return reply.ok ? spent : reply;
}

const control = (trigger: Exclude<ControlTrigger, 'complete'>, summary: string): Route => ({
  method: 'post',
  path: `/api/v1/ops/:id/${trigger}`,
  access: { scope: 'write' },
  summary,
  query: ['org_id', 'op_home'],
  answers: { 200: opShape },
  refusals: [409],
  handle: async (request: Authorized, link: Link): Promise<HttpReply> => {
    const named = readNamed(request);
    if (!named.ok) return named;
    const { reply } = await link.ask({ type: 'control-op', ...named.value, trigger });
    return controlled(reply, link);
  },
});

export const opRoutes: readonly Route[] = [
  {
    method: 'post',
    path: '/api/v1/ops',
    access: { scope: 'write' },
    summary: 'Registers an operation',
    answers: { 200: opShape, 201: opShape },
    refusals: [409],
    ...withBody(registration, register),
  },
  {
    method: 'get',
    path: '/api/v1/ops',
    access: { scope: 'read' },
    isQueued: true,
    summary: 'Lists operations in flight and recently ended ones',
    answers: { 200: opPage },
    ...withListing(['state', 'team_id', 'agent_id', 'action', 'resource', 'policy', 'rule_id', 'ended'], list),
  },
  {
    method: 'get',
    path: '/api/v1/ops/:id',
    access: { scope: 'read' },
    summary: 'Shows an operation',
    query: ['org_id', 'op_home'],
    refusals: [409],
    answers: { 200: opOrOps },
    handle: get,
  },
  control('pause', 'Pauses a running operation'),
  control('resume', 'Resumes a paused operation'),
  control('terminate', 'Terminates an operation'),
  {
    method: 'post',
    path: '/api/v1/ops/:id/complete',
    access: { scope: 'write' },
    summary: 'Completes a running operation',
    query: ['org_id', 'op_home'],
    answers: { 200: completedOpShape },
    refusals: [409],
    ...withBody(completion, complete),
  },
];
