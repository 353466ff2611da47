/** AuthZEN Authorization API 1.0: evaluation, evaluations and discovery (docs/authzen.md). */
import { ok, type Result } from '../../core/base/result.ts';
import { explain, type Fault, invalid } from '../../core/fault.ts';
import { isDeclaredJson, jsonOf } from '../engine/raw-body.ts';
import { problemOf } from '../engine/reply.ts';
import type { HttpReply, HttpRequest, RawRequest, Route } from '../engine/route.ts';
import type { JsonObject } from '../proto/messages.ts';
import { judge, refuseOnRecord, verdictJson } from '../rpc/judge.ts';
import type { WirePorts } from '../rpc/ports.ts';
import { AGENT_HEADER, type Asker, askerOf } from '../rpc/speaker.ts';
import {
  type Batch,
  type Evaluation,
  evaluation,
  evaluations,
  type Item,
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

type Asking = Asker & { readonly ports: WirePorts; readonly traceparent: string | undefined };
type Decision = { readonly decision: boolean; readonly context?: JsonObject };

async function evaluateOne(request: RawRequest, ports: WirePorts): Promise<HttpReply> {
  const asker = await askingOf(request, ports);
  if (!asker.ok) return asker;
  const body = bodyOf(request);
  return body.ok ? answerOne(asker.value, body.value) : refused(asker.value, undefined, body.fault);
}

async function evaluateMany(request: RawRequest, ports: WirePorts): Promise<HttpReply> {
  const asker = await askingOf(request, ports);
  if (!asker.ok) return asker;
  const body = bodyOf(request, MAX_BATCH_MARKS);
  if (!body.ok) return refused(asker.value, undefined, body.fault);
  const bytes = request.body.kind === 'whole' ? request.body.bytes.length : 0;
  const batch = readBatch(body.value, bytes);
  if (!batch.ok) return refused(asker.value, body.value, batch.fault);
  if (batch.value === undefined) return answerOne(asker.value, body.value);
  return answerBatch(asker.value, batch.value);
}

async function askingOf(request: RawRequest, ports: WirePorts): Promise<Result<Asking, Fault>> {
  const asker = await askerOf(ports, request);
  return asker.ok ? ok({ ports, ...asker.value, traceparent: request.caller.traceparent }) : asker;
}

/** A wrong content type is 400 here, as the standard has it. */
const bodyOf = (request: RawRequest, maxMarks?: number): Result<unknown, Fault> =>
  isDeclaredJson(request) ? jsonOf(request, maxMarks) : invalid('Content-Type', 'must be application/json');

async function answerOne(asker: Asking, body: unknown): Promise<HttpReply> {
  const read = readEvaluation(body);
  if (!read.ok) return refused(asker, body, read.fault);
  const answered = await evaluate(asker, read.value);
  return answered.ok ? ok({ status: 200, body: answered.value }) : answered;
}

/** Fault: `invalid_argument` is on record. */
async function evaluate(asking: Asking, { agent, question }: Evaluation): Promise<Result<Decision, Fault>> {
  const { ports, bearer, claimed, traceparent } = asking;
  if (claimed !== undefined && agent !== undefined && claimed !== agent && bearer.owner === undefined)
    return refuseOnRecord(ports, asking, question, OTHER_AGENT);
  const verdict = await judge(ports, bearer, agent ?? claimed, question, traceparent);
  if (!verdict.ok) return verdict;
  return ok({ decision: verdict.value.decision === 'allow', context: verdictJson(verdict.value) });
}

const OTHER_AGENT: Fault = {
  kind: 'invalid_argument',
  field: 'subject.id',
  problem: `names another agent than ${AGENT_HEADER}`,
};

async function answerBatch(asker: Asking, { semantic, items }: Batch): Promise<HttpReply> {
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

async function answerItem(asker: Asking, item: Item): Promise<Result<Decision, Fault>> {
  if ('evaluation' in item) return evaluate(asker, item.evaluation);
  return refuseOnRecord(asker.ports, asker, item.legible, item.fault);
}

const brokenItem = (fault: Fault): Decision => ({
  decision: false,
  context: { reason: explain(fault), error: { status: problemOf(fault).status, message: explain(fault) } },
});

/** Records a malformed request with the parts that can be read. */
const refused = (asker: Asking, body: unknown, fault: Fault): Promise<HttpReply> =>
  refuseOnRecord(asker.ports, asker, legibleIn(body), fault);

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
