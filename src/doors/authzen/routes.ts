/** AuthZEN Authorization API 1.0: evaluation, evaluations and discovery (docs/authzen.md). */
import { fail, ok, type Result } from '../../core/base/result.ts';
import { explain, type Fault, invalid } from '../../core/fault.ts';
import { isDeclaredJson, jsonOf } from '../engine/raw-body.ts';
import { problemOf } from '../engine/reply.ts';
import type { HttpReply, HttpRequest, RawRequest, Route } from '../engine/route.ts';
import type { JsonObject } from '../proto/messages.ts';
import { judge, recordRefusal, verdictJson } from '../rpc/judge.ts';
import type { WirePorts } from '../rpc/ports.ts';
import { AGENT_HEADER, type KnownBearer, knownBearer } from '../rpc/speaker.ts';
import {
  type Batch,
  type Evaluation,
  evaluation,
  evaluations,
  type Item,
  type Legible,
  legibleIn,
  readBatch,
  readEvaluation,
  type Semantic,
} from './evaluation.ts';
import { batchDecision, configuration, decision } from './shapes.ts';

const EVALUATION_PATH = '/access/v1/evaluation';
const EVALUATIONS_PATH = '/access/v1/evaluations';

/** A thousand evaluations with all their members, and some properties. */
const MAX_BATCH_MARKS = 96_000;
/** Evaluations asked at once, so that others come in between. */
const PIECE = 128;

type Asker = {
  readonly ports: WirePorts;
  readonly bearer: KnownBearer;
  readonly named: string | undefined;
  readonly traceparent: string | undefined;
};
type Decision = { readonly decision: boolean; readonly context?: JsonObject };

async function evaluateOne(request: RawRequest, ports: WirePorts): Promise<HttpReply> {
  const asker = await askerOf(request, ports);
  if (!asker.ok) return asker;
  const body = bodyOf(request);
  return body.ok ? answerOne(asker.value, body.value) : refused(asker.value, undefined, body.fault);
}

async function evaluateMany(request: RawRequest, ports: WirePorts): Promise<HttpReply> {
  const asker = await askerOf(request, ports);
  if (!asker.ok) return asker;
  const body = bodyOf(request, MAX_BATCH_MARKS);
  if (!body.ok) return refused(asker.value, undefined, body.fault);
  const bytes = request.body.kind === 'whole' ? request.body.bytes.length : 0;
  const batch = readBatch(body.value, bytes);
  if (!batch.ok) return refused(asker.value, body.value, batch.fault);
  if (batch.value === undefined) return answerOne(asker.value, body.value);
  return answerBatch(asker.value, batch.value);
}

async function askerOf({ headers, caller }: RawRequest, ports: WirePorts): Promise<Result<Asker, Fault>> {
  const bearer = await knownBearer(ports, headers.get('authorization'), caller);
  if (!bearer.ok) return bearer;
  const { traceparent } = caller;
  return ok({ ports, bearer: bearer.value, named: headers.get(AGENT_HEADER) || undefined, traceparent });
}

/** A wrong content type is 400 here, as the standard has it. */
const bodyOf = (request: RawRequest, maxMarks?: number): Result<unknown, Fault> =>
  isDeclaredJson(request) ? jsonOf(request, maxMarks) : invalid('Content-Type', 'must be application/json');

async function answerOne(asker: Asker, body: unknown): Promise<HttpReply> {
  const read = readEvaluation(body);
  if (!read.ok) return refused(asker, body, read.fault);
  const answered = await evaluate(asker, read.value);
  return answered.ok ? ok({ status: 200, body: answered.value }) : answered;
}

/** Fault: `invalid_argument` is on record. */
async function evaluate(
  { ports, bearer, named, traceparent }: Asker,
  { agent, question }: Evaluation,
): Promise<Result<Decision, Fault>> {
  if (named !== undefined && agent !== undefined && named !== agent && bearer.owner === undefined) {
    const { action, resource } = question;
    const reason = explain(OTHER_AGENT);
    const recorded = await recordRefusal(ports, bearer, { claimed: named, action, resource, reason });
    return recorded.ok ? fail(OTHER_AGENT) : recorded;
  }
  const verdict = await judge(ports, bearer, agent ?? named, question, traceparent);
  if (!verdict.ok) return verdict;
  return ok({ decision: verdict.value.decision === 'allow', context: verdictJson(verdict.value) });
}

const OTHER_AGENT: Fault = {
  kind: 'invalid_argument',
  field: 'subject.id',
  problem: `names another agent than ${AGENT_HEADER}`,
};

async function answerBatch(asker: Asker, { semantic, items }: Batch): Promise<HttpReply> {
  const decisions: Decision[] = [];
  const deciding = DECIDING[semantic];
  // With a deciding answer, what follows it must not even be asked.
  const piece = deciding === undefined ? PIECE : 1;
  for (let from = 0; from < items.length; from += piece) {
    const answers = await Promise.all(items.slice(from, from + piece).map((item) => answerItem(asker, item)));
    const outage = answers.find((answer) => !answer.ok && answer.fault.kind === 'audit_unavailable');
    if (outage?.ok === false) return outage;
    decisions.push(...answers.map((answer) => (answer.ok ? answer.value : brokenItem(answer.fault))));
    if (deciding !== undefined && decisions.at(-1)?.decision === deciding) break;
  }
  return ok({ status: 200, body: { evaluations: decisions } });
}

/** The decision after which nothing more is evaluated. */
const DECIDING: Readonly<Record<Semantic, boolean | undefined>> = {
  execute_all: undefined,
  deny_on_first_deny: false,
  permit_on_first_permit: true,
};

async function answerItem(asker: Asker, item: Item): Promise<Result<Decision, Fault>> {
  if ('evaluation' in item) return evaluate(asker, item.evaluation);
  const recorded = await recordUnread(asker, item.legible, item.fault);
  return recorded.ok ? fail(item.fault) : recorded;
}

const brokenItem = (fault: Fault): Decision => ({
  decision: false,
  context: { reason: explain(fault), error: { status: problemOf(fault).status, message: explain(fault) } },
});

async function refused(asker: Asker, body: unknown, fault: Fault): Promise<HttpReply> {
  const recorded = await recordUnread(asker, legibleIn(body), fault);
  return recorded.ok ? fail(fault) : recorded;
}

/** Records a malformed request with the parts that can be read. */
const recordUnread = ({ ports, bearer, named }: Asker, legible: Legible, fault: Fault) =>
  recordRefusal(ports, bearer, { claimed: named, ...legible, reason: explain(fault) });

/** Metadata that lets a client find the endpoints. Searches are not served, so they are not named. */
const discover =
  ({ publicUrl, scheme = 'http' }: AuthzenRouteOptions) =>
  async ({ headers }: HttpRequest): Promise<HttpReply> => {
    const base = publicUrl?.replace(/\/+$/, '') ?? `${scheme}://${hostOf(headers.get('host'))}`;
    return ok({
      status: 200,
      body: {
        policy_decision_point: base,
        access_evaluation_endpoint: base + EVALUATION_PATH,
        access_evaluations_endpoint: base + EVALUATIONS_PATH,
        supported_obligations: ['redact', 'set', 'cap', 'notify'],
      },
    });
  };

/** The host that the client used, if it is one. */
const hostOf = (host: string | undefined): string =>
  host !== undefined && /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i.test(host) ? host : 'localhost';

export type AuthzenRouteOptions = {
  /** SVC_PUBLIC_URL. */
  readonly publicUrl?: string | undefined;
  /** Used when no public URL is set; default: `http`. */
  readonly scheme?: 'http' | 'https';
};

export const authzenRoutes = (options: AuthzenRouteOptions): readonly Route[] => [
  {
    method: 'post',
    path: EVALUATION_PATH,
    access: 'agent',
    limit: 'none',
    summary: 'Evaluates one access request (AuthZEN 1.0)',
    body: evaluation,
    answers: { 200: decision },
    handle: evaluateOne,
  },
  {
    method: 'post',
    path: EVALUATIONS_PATH,
    access: 'agent',
    limit: 'none',
    summary: 'Evaluates up to 1,000 access requests (AuthZEN 1.0)',
    body: evaluations,
    answers: { 200: batchDecision },
    handle: evaluateMany,
  },
  {
    method: 'get',
    path: '/.well-known/authzen-configuration',
    access: 'public',
    limit: 'none',
    summary: 'Locate the AuthZEN endpoints',
    answers: { 200: configuration },
    handle: discover(options),
  },
];
