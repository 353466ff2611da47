/**
 * agentgateway's external authorization of MCP (docs/agentgateway.md). Two generations of its messages use the same
 * path: 1.4 sends the parameters and results of MCP as JSON, 1.3 as google.protobuf.Struct. Whatever comes, the answer
 * is a result of that protocol and never an error of gRPC, which agentgateway may be told to ignore.
 */
import { isMapping } from '../../core/base/mapping.ts';
import { fail, ok, type Result } from '../../core/base/result.ts';
import { cutText } from '../../core/base/text.ts';
import { reasonWithRemedy } from '../../core/check/remedy.ts';
import { explain, type Fault, invalid } from '../../core/fault.ts';
import { type Asked, askedIn, MCP_ACTION } from '../../core/mcp/asked.ts';
import type { Call } from '../grpc/call.ts';
import { type ForeignOptions, type Methods, unary } from '../grpc/method.ts';
import { BinaryReader, NO_MAX_FIELDS } from '../proto/binary-reader.ts';
import { BinaryWriter } from '../proto/binary-writer.ts';
import { type BytesFields, field, fieldsOf, limitSize, numberField, pairsIn, textOf } from '../proto/fields.ts';
import { textOf as jsonTextOf, parseJsonText } from '../proto/json.ts';
import { readStructJson } from '../proto/json-values.ts';
import type { JsonObject } from '../proto/messages.ts';
import { attempt, Malformed } from '../proto/schema.ts';
import { allowanceFor, readStruct, type StructLimits, writeStruct } from '../proto/struct.ts';
import { judge, judgePassage, refuseOnRecord } from '../rpc/judge.ts';
import type { WirePorts } from '../rpc/ports.ts';
import { AGENT_HEADER, type KnownBearer, knownBearer } from '../rpc/speaker.ts';
import { MAX_BATCH_BYTES } from '../shared/limits.ts';

export const EXT_MCP_SERVICE = 'agentgateway.dev.ext_mcp.ExtMcp';

/** The numbers of fields, the same for requests and responses of MCP. */
const MESSAGE = { services: 1, method: 2, metadata: 3, payload: 4, headers: 5 } as const;
const RESULT = { pass: 1, mutated: 2, error: 3 } as const;
const ERROR = { code: 1, reason: 2 } as const;
const ERROR_CODE = { unknown: 0, permissionDenied: 1, resourceExhausted: 2, invalid: 3 } as const;

/** Limits headers and metadata, in bytes: they are read before the caller is known. */
const MAX_HEAD_BYTES = 128 * 1024;

type Identity = { readonly authorization: string | undefined; readonly claimed: string | undefined };

type McpMessage = {
  readonly services: readonly string[];
  readonly method: string;
  /** Parameters or result, not read yet; undefined where there are none. */
  readonly payload: Buffer | undefined;
  readonly claimed: string | undefined;
};
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
      const identity = attempt(() => identityIn(bytes));
      if (!identity.ok) return ok(refusal(identity.fault));
      try {
        const authorization = identity.value.authorization ?? call.authorization;
        // Responses come without the agent's headers: nobody is known there unless agentgateway is told to say who.
        if (authorization === undefined && answer === checkResponse) return ok(PASS);
        const bearer = await knownBearer(ports, authorization, { address: call.address });
        if (!bearer.ok) return ok(refusal(bearer.fault));
        const claimed = identity.value.claimed || agent || undefined;
        const message = attempt(() => ({ ...readMessage(bytes), claimed }));
        if (!message.ok) return ok(refusal(await onRecord(ports, bearer.value, claimed, message.fault)));
        const answered = await answer(ports, message.value, bearer.value, call);
        return answered.ok ? answered : ok(refusal(answered.fault));
      } catch (error) {
        onDefect(error);
        return ok(refusal({ kind: 'internal' }));
      }
    },
  });

/** The headers of the agent's own request, or what agentgateway is configured to say about it. Throws `Malformed`. */
function identityIn(bytes: Buffer): Identity {
  const fields = fieldsOf(bytes, MESSAGE.metadata, MESSAGE.headers);
  limitSize(fields, MAX_HEAD_BYTES);
  const headers = pairsIn(fields, MESSAGE.headers);
  const metadata = fields.get(MESSAGE.metadata)?.at(-1);
  const value = (wanted: string): string | undefined => {
    const found = new Set(headers.flatMap(([name, text]) => (name.toLowerCase() === wanted ? [text] : [])));
    if (found.size > 1) throw new Malformed(wanted, 'must not be sent more than once');
    const [header] = found;
    return header ?? (metadata && textInStruct(metadata, wanted));
  };
  return { authorization: value('authorization'), claimed: value(AGENT_HEADER) };
}

/** The numbers of fields of google.protobuf.Struct. */
const STRUCT = { fields: 1 } as const;
const ENTRY = { key: 1, value: 2 } as const;
const VALUE = { string: 3 } as const;

/** The text under a name, with nothing else of the Struct read. */
function textInStruct(struct: Buffer, wanted: string): string | undefined {
  const entries = (fieldsOf(struct, STRUCT.fields).get(STRUCT.fields) ?? []).map((bytes) =>
    fieldsOf(bytes, ENTRY.key, ENTRY.value),
  );
  const value = entries
    .filter((entry) => textOf(entry, ENTRY.key) === wanted)
    .at(-1)
    ?.get(ENTRY.value)
    ?.at(-1);
  return value && fieldsOf(value, VALUE.string).get(VALUE.string)?.at(-1)?.toString();
}

/** Throws `Malformed`. */
function readMessage(bytes: Buffer): Omit<McpMessage, 'claimed'> {
  const fields: BytesFields = fieldsOf(bytes, MESSAGE.services, MESSAGE.method, MESSAGE.payload);
  return {
    services: (fields.get(MESSAGE.services) ?? []).map(String),
    method: textOf(fields, MESSAGE.method),
    payload: fields.get(MESSAGE.payload)?.at(-1),
  };
}

/** JSON of an object begins with a brace; a Struct with the tag of its first entry, or it is empty. */
const isStruct = (payload: Buffer | undefined): boolean =>
  payload !== undefined && (payload.length === 0 || payload[0] === 0x0a);

/** `limits`: those of attributes unless given. */
function readPayload(payload: Buffer | undefined, limits?: StructLimits): Result<JsonObject, Fault> {
  return attempt(() => {
    if (payload === undefined) return {};
    if (!isStruct(payload)) {
      const json = parseJsonText(jsonTextOf(payload), 0, limits && LIST_MARKS);
      return readStructJson(json, 'payload', limits);
    }
    const reader = new BinaryReader(payload, limits && NO_MAX_FIELDS);
    const struct = readStruct(reader, allowanceFor('payload', limits));
    reader.finish();
    return struct;
  });
}

/** They only set up, list, or report the state of a request. Their lists are left out of the answer. */
const PASSING: ReadonlySet<string> = new Set([
  'initialize',
  'server/discover',
  'ping',
  'logging/setLevel',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'resources/unsubscribe',
  'notifications/initialized',
  'notifications/cancelled',
  'notifications/progress',
  'notifications/roots/list_changed',
]);

/** That a list has changed says nothing of what is in it. */
function readSubscriptions({ notifications }: JsonObject): Result<undefined, Fault> {
  if (!isMapping(notifications)) return invalid('params.notifications', 'must be an object');
  const { resourceSubscriptions: uris = [] } = notifications;
  return Array.isArray(uris) && uris.length === 0
    ? ok(undefined)
    : invalid('params.notifications.resourceSubscriptions', 'must be empty; use resources/subscribe');
}

/** Returns the subject of an MCP request, or undefined for requests that pass. Unknown requests are refused. */
function askedBy({ method, payload }: McpMessage): Result<Asked | undefined, Fault> {
  if (method === '') return invalid('method', 'is required');
  if (PASSING.has(method)) return ok(undefined);
  const params = readPayload(payload);
  if (!params.ok) return params;
  if (method === 'subscriptions/listen') return readSubscriptions(params.value);
  const asked = askedIn(method, params.value);
  if (asked === undefined)
    return invalid('method', `must be one that the gateway can check, not ${cutText(method, 64)}`);
  return asked.ok ? asked : invalid(asked.fault.field, asked.fault.problem);
}

async function checkRequest(
  ports: WirePorts,
  message: McpMessage,
  bearer: KnownBearer,
): Promise<Result<Buffer, Fault>> {
  const asked = askedBy(message);
  if (!asked.ok) return fail(await onRecord(ports, bearer, message.claimed, asked.fault));
  if (asked.value === undefined) return ok(PASS);
  const { kind, name, args } = asked.value;
  const [server] = message.services;
  if (server === undefined || server === '' || server.includes('/') || message.services.length > 1)
    return fail(await onRecord(ports, bearer, message.claimed, ONE_SERVICE));
  const verdict = await judgePassage(ports, bearer, message.claimed, {
    action: MCP_ACTION[kind],
    resource: `${server}/${name}`,
    attributes: args,
    supportedObligations: [],
    traceId: undefined,
  });
  if (!verdict.ok) return verdict;
  const { decision, approvalId, remedy } = verdict.value;
  const reason = reasonWithRemedy(verdict.value.reason, remedy);
  if (decision === 'allow') return ok(PASS);
  return ok(error(ERROR_CODE.permissionDenied, approvalId === undefined ? reason : `${reason} (${approvalId})`));
}

const ONE_SERVICE: Fault = { kind: 'invalid_argument', field: 'service_names', problem: 'must have one name' };

/** Which member of a list's result has the items, what names one, and what its use would be. */
const LISTS: Readonly<Record<string, { readonly member: string; readonly key: string; readonly kind: Asked['kind'] }>> =
  {
    'tools/list': { member: 'tools', key: 'name', kind: 'tool' },
    'prompts/list': { member: 'prompts', key: 'name', kind: 'prompt' },
    'resources/list': { member: 'resources', key: 'uri', kind: 'resource' },
  };

/** Each item of a list is a question about each of the servers whose lists were joined. */
const MAX_QUESTIONS = 10_000;

/** Limits for a list of 4 MiB whose items have schemas; nobody's attributes. */
const LIST_LIMITS: StructLimits = { depth: 64, keys: 200_000, items: 100_000, isExact: false };
const LIST_MARKS = 300_000;

/** Leaves in a list what the agent could use; any other result passes unread. */
async function checkResponse(
  ports: WirePorts,
  message: McpMessage,
  bearer: KnownBearer,
  caller: Pick<Call, 'cancelled'>,
): Promise<Result<Buffer, Fault>> {
  const list = Object.hasOwn(LISTS, message.method) ? LISTS[message.method] : undefined;
  if (list === undefined) return ok(PASS);
  const result = readPayload(message.payload, LIST_LIMITS);
  if (!result.ok) return fail(await onRecord(ports, bearer, message.claimed, result.fault));
  const items = result.value[list.member];
  if (!Array.isArray(items)) return ok(PASS);
  if (items.length * message.services.length > MAX_QUESTIONS)
    return invalid(`result.${list.member}`, `times the services must be at most ${MAX_QUESTIONS}`);
  const kept: unknown[] = [];
  for (const item of items) {
    if (caller.cancelled) return ok(PASS); // nobody reads it
    const name = isMapping(item) ? item[list.key] : undefined;
    if (typeof name !== 'string') continue;
    const usable = await isUsable(ports, bearer, message, { kind: list.kind, name, args: {} });
    if (!usable.ok) return usable;
    if (usable.value) kept.push(item);
  }
  if (kept.length === items.length) return ok(PASS);
  return ok(field(RESULT.mutated, encodePayload({ ...result.value, [list.member]: kept }, isStruct(message.payload))));
}

/** By at least one of the servers whose lists were joined. A condition that lacks the arguments is no denial yet. */
async function isUsable(
  ports: WirePorts,
  bearer: KnownBearer,
  { services, claimed }: McpMessage,
  { kind, name, args }: Asked,
): Promise<Result<boolean, Fault>> {
  for (const server of services) {
    const resource = `${server}/${name}`;
    const question = { action: MCP_ACTION[kind], resource, attributes: args, op: undefined, supportedObligations: [] };
    const verdict = await judge(ports, bearer, claimed, question);
    if (!verdict.ok) return verdict;
    if (verdict.value.decision !== 'deny' || verdict.value.cause === 'condition_error') return ok(true);
  }
  return ok(false);
}

function encodePayload(payload: JsonObject, asStruct: boolean): Buffer {
  if (!asStruct) return Buffer.from(JSON.stringify(payload));
  const writer = new BinaryWriter();
  writeStruct(writer, payload, allowanceFor('payload', LIST_LIMITS));
  return writer.finish();
}

/** The fault to answer: its own, unless even that cannot be recorded. */
const onRecord = async (
  ports: WirePorts,
  bearer: KnownBearer,
  claimed: string | undefined,
  fault: Fault,
): Promise<Fault> =>
  (await refuseOnRecord(ports, { bearer, claimed }, { action: MCP_ACTION.tool, resource: '' }, fault)).fault;

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
