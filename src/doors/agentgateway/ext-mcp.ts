/**
 * agentgateway's external authorization of MCP (docs/agentgateway.md). Two generations of its messages use the same
 * path: 1.4 sends the parameters and results of MCP as JSON, 1.3 as google.protobuf.Struct. Whatever comes, the answer
 * is a result of that protocol and never an error of gRPC, which agentgateway may be told to ignore.
 */
import { isMapping } from '../../core/base/mapping.ts';
import { fail, ok, type Result } from '../../core/base/result.ts';
import { hasDotSteps } from '../../core/base/text.ts';
import { explain, type Fault, invalid } from '../../core/fault.ts';
import type { Call } from '../grpc/call.ts';
import { type ForeignOptions, type Methods, unary } from '../grpc/method.ts';
import { BinaryReader } from '../proto/binary-reader.ts';
import { BinaryWriter } from '../proto/binary-writer.ts';
import { type BytesFields, field, fieldsOf, numberField, pairsIn, textOf } from '../proto/fields.ts';
import { parseJson } from '../proto/json.ts';
import { readStructJson } from '../proto/json-values.ts';
import type { JsonObject } from '../proto/messages.ts';
import { attempt, Malformed } from '../proto/schema.ts';
import { allowanceFor, readStruct, writeStruct } from '../proto/struct.ts';
import { judge, judgePassage, recordRefusal } from '../rpc/judge.ts';
import type { WirePorts } from '../rpc/ports.ts';
import { AGENT_HEADER, type KnownBearer, knownBearer } from '../rpc/speaker.ts';
import { MAX_BATCH_BYTES } from '../shared/limits.ts';

export const EXT_MCP_SERVICE = 'agentgateway.dev.ext_mcp.ExtMcp';

/** The numbers of fields, the same for requests and responses of MCP. */
const MESSAGE = { services: 1, method: 2, metadata: 3, payload: 4, headers: 5 } as const;
const RESULT = { pass: 1, mutated: 2, error: 3 } as const;
const ERROR = { code: 1, reason: 2 } as const;
const ERROR_CODE = { unknown: 0, permissionDenied: 1, resourceExhausted: 2, invalid: 3 } as const;

type McpMessage = {
  readonly services: readonly string[];
  readonly method: string;
  /** Parameters or result; undefined where there are none. */
  readonly payload: JsonObject | undefined;
  readonly isStruct: boolean;
  readonly authorization: string | undefined;
  readonly claimed: string | undefined;
};
type Asked = { readonly action: string; readonly name: string; readonly attributes: JsonObject };
type Answer = (
  ports: WirePorts,
  message: McpMessage,
  bearer: KnownBearer,
  caller: Pick<Call, 'cancelled'>,
) => Promise<Result<Buffer, Fault>>;

export function extMcpService(ports: WirePorts, options: ForeignOptions): Methods {
  return new Map([
    [`/${EXT_MCP_SERVICE}/CheckRequest`, method(ports, options, checkRequest)],
    [`/${EXT_MCP_SERVICE}/CheckResponse`, method(ports, options, checkResponse)],
  ]);
}

const method = (ports: WirePorts, { count, onDefect }: ForeignOptions, answer: Answer) =>
  unary({
    decode: (bytes: Buffer) => {
      count();
      return ok(bytes);
    },
    encode: (response: Buffer) => response,
    maxBytes: MAX_BATCH_BYTES, // lists of tools are long
    keep: (metadata) => String(metadata[AGENT_HEADER] ?? ''),
    handle: async (bytes, call, agent) => {
      const identity = attempt(() => identityIn(fieldsOf(bytes)));
      if (!identity.ok) return ok(refusal(identity.fault));
      try {
        const authorization = identity.value.authorization ?? call.authorization;
        // Responses come without the agent's headers: nobody is known there unless agentgateway is told to say who.
        if (authorization === undefined && answer === checkResponse) return ok(PASS);
        const bearer = await knownBearer(ports, authorization, { address: call.address });
        if (!bearer.ok) return ok(refusal(bearer.fault));
        const claimed = identity.value.claimed || agent || undefined;
        const read = attempt(() => ({ ...readMessage(bytes), authorization, claimed }));
        const answered = read.ok ? await answer(ports, read.value, bearer.value, call) : read;
        if (answered.ok) return answered;
        if (answered.fault.kind !== 'invalid_argument' || read.ok) return ok(refusal(answered.fault));
        return ok(refusal(await onRecord(ports, bearer.value, claimed, answered.fault)));
      } catch (error) {
        onDefect(error);
        return ok(refusal({ kind: 'internal' }));
      }
    },
  });

/** The headers of the agent's own request, or what agentgateway is configured to say about it. */
function identityIn(fields: BytesFields): Pick<McpMessage, 'authorization' | 'claimed'> {
  const metadata = structIn(fields.get(MESSAGE.metadata)?.at(-1));
  const value = (wanted: string): string | undefined => {
    const found = new Set(
      pairsIn(fields, MESSAGE.headers).flatMap(([name, text]) => (name.toLowerCase() === wanted ? [text] : [])),
    );
    if (found.size > 1) throw new Malformed(wanted, 'must not be sent more than once');
    const [header] = found;
    if (header !== undefined) return header;
    const stated = metadata?.[wanted];
    return typeof stated === 'string' ? stated : undefined;
  };
  return { authorization: value('authorization'), claimed: value(AGENT_HEADER) };
}

/** Throws `Malformed`. */
function readMessage(bytes: Buffer): Pick<McpMessage, 'services' | 'method' | 'payload' | 'isStruct'> {
  const fields = fieldsOf(bytes);
  const payload = fields.get(MESSAGE.payload)?.at(-1);
  // JSON of an object begins with a brace; a Struct with the tag of its first entry, or it is empty.
  const isStruct = payload !== undefined && (payload.length === 0 || payload[0] === 0x0a);
  return {
    services: (fields.get(MESSAGE.services) ?? []).map(String),
    method: textOf(fields, MESSAGE.method),
    payload: isStruct ? structIn(payload) : payload && readStructJson(parseJson(payload), 'payload'),
    isStruct,
  };
}

function structIn(bytes: Buffer | undefined): JsonObject | undefined {
  if (bytes === undefined) return undefined;
  const reader = new BinaryReader(bytes);
  const struct = readStruct(reader, allowanceFor('payload'));
  reader.finish();
  return struct;
}

const ACTION = { tool: 'mcp.call', resource: 'mcp.read', prompt: 'mcp.prompt' } as const;

/** What a request of MCP is about; undefined for those that only set up or list, which pass. */
function askedBy({ method: name, payload = {} }: McpMessage): Result<Asked | undefined, Fault> {
  switch (name) {
    case 'tools/call':
      return named(payload, ACTION.tool);
    case 'prompts/get':
      return named(payload, ACTION.prompt);
    case 'resources/read':
    case 'resources/subscribe':
      return located(payload['uri'], 'params.uri');
    case 'completion/complete': {
      const ref = isMapping(payload['ref']) ? payload['ref'] : {};
      return ref['type'] === 'ref/prompt'
        ? named({ name: ref['name'] }, ACTION.prompt, 'params.ref')
        : located(ref['uri'], 'params.ref');
    }
    default:
      return name === '' ? invalid('method', 'is required') : ok(undefined);
  }
}

function located(uri: unknown, field: string): Result<Asked, Fault> {
  if (typeof uri !== 'string' || uri === '') return invalid(field, 'is required');
  if (hasDotSteps(uri)) return invalid(field, 'must have no "." or ".." steps');
  return ok({ action: ACTION.resource, name: uri, attributes: {} });
}

function named(
  { name, arguments: args = {} }: JsonObject,
  action: string,
  field = 'params.name',
): Result<Asked, Fault> {
  if (typeof name !== 'string' || name === '') return invalid(field, 'is required');
  return isMapping(args) ? ok({ action, name, attributes: args }) : invalid('params.arguments', 'must be an object');
}

async function checkRequest(
  ports: WirePorts,
  message: McpMessage,
  bearer: KnownBearer,
): Promise<Result<Buffer, Fault>> {
  const asked = askedBy(message);
  if (!asked.ok) return fail(await onRecord(ports, bearer, message.claimed, asked.fault));
  if (asked.value === undefined) return ok(PASS);
  const { action, name, attributes } = asked.value;
  const [server] = message.services;
  if (server === undefined || server === '' || server.includes('/') || message.services.length > 1)
    return fail(await onRecord(ports, bearer, message.claimed, ONE_SERVICE));
  const verdict = await judgePassage(ports, bearer, message.claimed, {
    action,
    resource: `${server}/${name}`,
    attributes,
    supportedObligations: [],
    traceId: undefined,
  });
  if (!verdict.ok) return verdict;
  const { decision, reason, approvalId } = verdict.value;
  if (decision === 'allow') return ok(PASS);
  return ok(error(ERROR_CODE.permissionDenied, approvalId === undefined ? reason : `${reason} (${approvalId})`));
}

const ONE_SERVICE: Fault = { kind: 'invalid_argument', field: 'service_names', problem: 'must have one name' };

/** Which member of a list's result has the items, what names one, and what its use would be. */
const LISTS: Readonly<Record<string, { readonly member: string; readonly key: string; readonly action: string }>> = {
  'tools/list': { member: 'tools', key: 'name', action: ACTION.tool },
  'prompts/list': { member: 'prompts', key: 'name', action: ACTION.prompt },
  'resources/list': { member: 'resources', key: 'uri', action: ACTION.resource },
};

/** Each item of a list is a question about each of the servers whose lists were joined. */
const MAX_QUESTIONS = 10_000;

/** Leaves in a list what the agent could use; any other result passes. */
async function checkResponse(
  ports: WirePorts,
  message: McpMessage,
  bearer: KnownBearer,
  caller: Pick<Call, 'cancelled'>,
): Promise<Result<Buffer, Fault>> {
  const list = Object.hasOwn(LISTS, message.method) ? LISTS[message.method] : undefined;
  const items = list === undefined ? undefined : message.payload?.[list.member];
  if (list === undefined || !Array.isArray(items)) return ok(PASS);
  if (items.length * message.services.length > MAX_QUESTIONS)
    return invalid(`result.${list.member}`, `times the services must be at most ${MAX_QUESTIONS}`);
  const kept: unknown[] = [];
  for (const item of items) {
    if (caller.cancelled) return ok(PASS); // nobody reads it
    const name = isMapping(item) ? item[list.key] : undefined;
    if (typeof name !== 'string') continue;
    const usable = await isUsable(ports, bearer, message, { action: list.action, name, attributes: {} });
    if (!usable.ok) return usable;
    if (usable.value) kept.push(item);
  }
  if (kept.length === items.length) return ok(PASS);
  return ok(field(RESULT.mutated, encodePayload({ ...message.payload, [list.member]: kept }, message.isStruct)));
}

/** By at least one of the servers whose lists were joined. A condition that lacks the arguments is no denial yet. */
async function isUsable(
  ports: WirePorts,
  bearer: KnownBearer,
  { services, claimed }: McpMessage,
  { action, name, attributes }: Asked,
): Promise<Result<boolean, Fault>> {
  for (const server of services) {
    const resource = `${server}/${name}`;
    const question = { action, resource, attributes, op: undefined, supportedObligations: [] };
    const verdict = await judge(ports, bearer, claimed, question);
    if (!verdict.ok) return verdict;
    if (verdict.value.decision !== 'deny' || verdict.value.cause === 'condition_error') return ok(true);
  }
  return ok(false);
}

function encodePayload(payload: JsonObject, isStruct: boolean): Buffer {
  if (!isStruct) return Buffer.from(JSON.stringify(payload));
  const writer = new BinaryWriter();
  writeStruct(writer, payload, allowanceFor('payload'));
  return writer.finish();
}

/** The fault to answer: its own, unless even that cannot be recorded. */
async function onRecord(
  ports: WirePorts,
  bearer: KnownBearer,
  claimed: string | undefined,
  fault: Fault,
): Promise<Fault> {
  const recorded = await recordRefusal(ports, bearer, {
    claimed,
    action: ACTION.tool,
    resource: '',
    reason: explain(fault),
  });
  return recorded.ok ? fault : recorded.fault;
}

const PASS = field(RESULT.pass, '');

const error = (code: number, reason: string): Buffer =>
  field(RESULT.error, Buffer.concat([numberField(ERROR.code, code), field(ERROR.reason, reason)]));

function refusal(fault: Fault): Buffer {
  switch (fault.kind) {
    case 'invalid_argument':
      return error(ERROR_CODE.invalid, explain(fault));
    case 'unauthenticated':
    case 'insufficient_scope':
      return error(ERROR_CODE.permissionDenied, explain(fault));
    case 'overloaded':
    case 'rate_limited':
      return error(ERROR_CODE.resourceExhausted, explain(fault));
    default:
      return error(ERROR_CODE.unknown, explain(fault));
  }
}
