/**
 * OPA's Data API, for clients that ask a policy server about the calls of tools (docs/opa.md). There, `{}` and a null
 * result mean that the policy has no opinion, and the tool runs: neither is ever answered.
 */
import { z } from 'zod';
import { isMapping } from '../../core/base/mapping.ts';
import { ok, type Result } from '../../core/base/result.ts';
import { explain, type Fault, invalid } from '../../core/fault.ts';
import { jsonOf } from '../engine/raw-body.ts';
import { problemOf } from '../engine/reply.ts';
import type { HttpReply, HttpResponse, RawRequest, Route } from '../engine/route.ts';
import { readStructJson } from '../proto/json-values.ts';
import type { JsonObject } from '../proto/messages.ts';
import { attempt } from '../proto/schema.ts';
import { addVerdict, judge, type Question, refuseOnRecord, type Verdict } from '../rpc/judge.ts';
import type { WirePorts } from '../rpc/ports.ts';
import { askerOf } from '../rpc/speaker.ts';
import { isMappingOrNone, isTextOrNone, optional, readBody, textAt } from '../shared/input.ts';
import { areQuestionFields, type QuestionFields, questionFields, verdictFields } from '../shared/question-shapes.ts';

const PATH = '/v1/data/svc/authz/decision';

const attributes = optional(z.looseObject({}));

/** As the Vercel AI SDK sends it; what else it sends, such as the messages, is neither judged nor logged. */
const toolInput = z.looseObject({
  tool: z.looseObject({ name: z.string() }),
  args: attributes.meta({ description: 'The attributes of a `tool.call` on this name.' }),
  ...questionFields,
});
const actionInput = z.looseObject({
  action: z.string(),
  resource: optional(z.string()),
  attributes,
  ...questionFields,
});
const request = z.looseObject({ input: z.union([actionInput, toolInput]) });
/** Which of both it is, is known once there is an object. */
const anyRequest = z.looseObject({ input: z.looseObject({}) });
const toolRequest = z.looseObject({ input: toolInput });
const actionRequest = z.looseObject({ input: actionInput });

const DECISION = { allow: 'allow', deny: 'deny', pending: 'requires-approval' } as const satisfies Record<
  Verdict['decision'],
  string
>;

const answer = z.strictObject({
  result: z.strictObject({ decision: z.enum(['allow', 'deny', 'requires-approval']), ...verdictFields }),
});

/** As OPA itself reports errors. */
const failure = z.strictObject({ code: z.string(), message: z.string() });

async function decide(raw: RawRequest, ports: WirePorts): Promise<HttpReply> {
  const asker = await askerOf(ports, raw);
  if (!asker.ok) return ok(errorOf(asker.fault));
  const body = jsonOf(raw);
  const question = body.ok ? readInput(body.value) : body;
  if (!question.ok) {
    const legible = legibleIn(body.ok ? body.value : undefined);
    return ok(errorOf((await refuseOnRecord(ports, asker.value, legible, question.fault)).fault));
  }
  const { bearer, claimed } = asker.value;
  const verdict = await judge(ports, bearer, claimed, question.value, raw.caller.traceparent);
  if (!verdict.ok) return ok(errorOf(verdict.fault));
  const { value } = verdict;
  return ok({ status: 200, body: { result: addVerdict({ decision: DECISION[value.decision] }, value) } });
}

/** Returns the legible parts of a malformed request; '' for the others. */
function legibleIn(body: unknown): { readonly action: string; readonly resource: string } {
  const tool = textAt(body, 'input', 'tool', 'name');
  return tool === ''
    ? { action: textAt(body, 'input', 'action'), resource: textAt(body, 'input', 'resource') }
    : { action: 'tool.call', resource: tool };
}

function readInput(body: unknown): Result<Question, Fault> {
  const input = isMapping(body) ? body['input'] : undefined;
  if (!isMapping(input)) {
    const shape = readBody(anyRequest, body);
    return shape.ok ? invalid('input', 'must be a JSON object') : shape;
  }
  if (Object.hasOwn(input, 'action') && Object.hasOwn(input, 'tool'))
    return invalid('input', 'must have either action or tool, not both');
  return Object.hasOwn(input, 'action') ? readAction(body, input) : readTool(body, input);
}

function readTool(body: unknown, input: JsonObject): Result<Question, Fault> {
  const { tool, args } = input;
  if (isMapping(tool) && typeof tool['name'] === 'string' && isMappingOrNone(args) && areQuestionFields(input))
    return questionOf(input, { action: 'tool.call', resource: tool['name'] }, args);
  const read = readBody(toolRequest, body);
  if (!read.ok) return read;
  return questionOf(read.value.input, { action: 'tool.call', resource: read.value.input.tool.name }, args);
}

function readAction(body: unknown, input: JsonObject): Result<Question, Fault> {
  const { action, resource, attributes } = input;
  if (typeof action === 'string' && isTextOrNone(resource) && isMappingOrNone(attributes) && areQuestionFields(input))
    return questionOf(input, { action, resource: resource ?? '' }, attributes);
  const read = readBody(actionRequest, body);
  if (!read.ok) return read;
  const { input: known } = read.value;
  return questionOf(known, { action: known.action, resource: known.resource ?? '' }, attributes);
}

/** `sent`: the attributes as they came, of which the schema's copy would not have every member. */
function questionOf(
  { trace_id: traceId = null, span_id: spanId = null, supported_obligations }: QuestionFields,
  what: { readonly action: string; readonly resource: string },
  sent: unknown,
): Result<Question, Fault> {
  if ((traceId === null) !== (spanId === null))
    return invalid('input', 'must have both trace_id and span_id, or neither');
  const read = attempt(() => readStructJson(sent ?? {}, 'input'));
  if (!read.ok) return read;
  const op = traceId === null || spanId === null ? undefined : { traceId, spanId };
  const { action, resource } = what;
  return ok({ action, resource, attributes: read.value, op, supportedObligations: supported_obligations ?? [] });
}

/** As OPA itself reports errors. Not 2xx, so the tool does not run. */
function errorOf(fault: Fault): HttpResponse {
  const { status, headers = [] } = problemOf(fault);
  const code = status === 400 ? 'invalid_parameter' : status === 401 || status === 403 ? 'unauthorized' : fault.kind;
  return { status, headers, body: { code, message: explain(fault) } };
}

export const opaRoutes: readonly Route[] = [
  {
    method: 'post',
    path: PATH,
    access: 'agent',
    limit: 'none',
    summary: "Decides about a tool's call or any other action (OPA Data API)",
    body: request,
    answers: { 200: answer },
    failure,
    handle: decide,
  },
];
