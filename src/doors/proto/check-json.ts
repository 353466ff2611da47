/** The JSON codec of the check, by hand like its binary one: the hot path of the Connect door. */
import { quote } from '../../core/base/text.ts';
import {
  jsonObject,
  readAgentIdJson,
  readBoolJson,
  readDoubleJson,
  readStringJson,
  readStringsJson,
  readStructJson,
  unknownField,
} from './json-values.ts';
import {
  CAUSE_WORDS,
  type CheckActionRequest,
  type CheckActionResponse,
  type CheckDraft,
  emptyCheck,
  type Obligation,
} from './messages.ts';
import { Malformed } from './schema.ts';
import { timestampText } from './timestamp.ts';

/** `path` is where the message lies: empty, or `requests[3].`. */
export function readCheckActionRequestJson(value: unknown, path: string): CheckActionRequest {
  const source = jsonObject(value, path);
  const message = emptyCheck();
  let seen = 0;
  for (const key in source) {
    const bit = readField(message, key, source[key], path);
    if ((seen & bit) !== 0) throw new Malformed(path + key, 'is given under both of its names');
    seen |= bit;
  }
  return message;
}

/** Returns the bit that stands for the field, under either of its names. */
function readField(message: CheckDraft, key: string, item: unknown, path: string): number {
  switch (key) {
    case 'agent':
      if (item !== null) message.agent = readAgentIdJson(item, `${path}agent`);
      return 1;
    case 'credentialToken':
    case 'credential_token':
      message.credentialToken = readStringJson(item, path, 'credential_token');
      return 2;
    case 'traceId':
    case 'trace_id':
      message.traceId = readStringJson(item, path, 'trace_id');
      return 4;
    case 'spanId':
    case 'span_id':
      message.spanId = readStringJson(item, path, 'span_id');
      return 8;
    case 'action':
      message.action = readStringJson(item, path, 'action');
      return 16;
    case 'resource':
      message.resource = readStringJson(item, path, 'resource');
      return 32;
    case 'attributes':
      if (item !== null) message.attributes = readStructJson(item, `${path}attributes`);
      return 64;
    case 'estimatedCostUsd':
    case 'estimated_cost_usd':
      message.estimatedCostUsd = readDoubleJson(item, path, 'estimated_cost_usd');
      return 128;
    case 'caller':
      if (item !== null) message.caller = readAgentIdJson(item, `${path}caller`);
      return 256;
    case 'dryRun':
    case 'dry_run':
      message.dryRun = readBoolJson(item, path, 'dry_run');
      return 512;
    case 'correlationId':
    case 'correlation_id':
      message.correlationId = readStringJson(item, path, 'correlation_id');
      return 1024;
    case 'supportedObligations':
    case 'supported_obligations':
      if (item !== null) message.supportedObligations = readStringsJson(item, `${path}supported_obligations`);
      return 2048;
    case 'opHome':
    case 'op_home':
      message.opHome = readStringJson(item, path, 'op_home');
      return 4096;
    default:
      throw unknownField(path, key, 'CheckActionRequest');
  }
}

const DECISION_JSON = {
  unspecified: '{"decision":"DECISION_UNSPECIFIED"',
  allow: '{"decision":"DECISION_ALLOW"',
  deny: '{"decision":"DECISION_DENY"',
  pending: '{"decision":"DECISION_PENDING"',
} as const satisfies Record<CheckActionResponse['decision'], string>;

const OP_STATE_JSON = {
  unspecified: '',
  pending: ',"opState":"OP_STATE_PENDING"',
  running: ',"opState":"OP_STATE_RUNNING"',
  paused: ',"opState":"OP_STATE_PAUSED"',
  completing: ',"opState":"OP_STATE_COMPLETING"',
  terminated: ',"opState":"OP_STATE_TERMINATED"',
} as const satisfies Record<CheckActionResponse['opState'], string>;

const CAUSE_JSON = Object.fromEntries(
  CAUSE_WORDS.map((cause) => [cause, `,"cause":"DECISION_CAUSE_${cause.toUpperCase()}"`]),
) as Readonly<Record<CheckActionResponse['cause'], string>>;

export function writeCheckActionResponseJson(response: CheckActionResponse): string {
  let json: string = DECISION_JSON[response.decision];
  if (response.reason !== '') json += `,"reason":${quote(response.reason)}`;
  if (response.policy !== '') json += `,"policy":${quote(response.policy)}`;
  if (response.ruleId !== '') json += `,"ruleId":${quote(response.ruleId)}`;
  if (response.opId !== '') json += `,"opId":${quote(response.opId)}`;
  json += OP_STATE_JSON[response.opState];
  if (response.auditId !== 0) json += `,"auditId":"${response.auditId}"`;
  if (response.correlationId !== '') json += `,"correlationId":${quote(response.correlationId)}`;
  if (response.cause !== 'unspecified') json += CAUSE_JSON[response.cause];
  if (response.tier !== 'unspecified') json += `,"tier":"BUDGET_TIER_${response.tier.toUpperCase()}"`;
  if (response.period !== 'unspecified') json += `,"period":"BUDGET_PERIOD_${response.period.toUpperCase()}"`;
  if (response.resetsAt !== undefined) json += `,"resetsAt":"${timestampText(response.resetsAt)}"`;
  if (response.approvalId !== '') json += `,"approvalId":${quote(response.approvalId)}`;
  if (response.obligations.length > 0) json += `,"obligations":[${response.obligations.map(obligationJson).join()}]`;
  if (response.opHome !== '') json += `,"opHome":${quote(response.opHome)}`;
  if (response.remedy !== '') json += `,"remedy":${quote(response.remedy)}`;
  return `${json}}`;
}

function obligationJson({ id, type, properties }: Obligation): string {
  const parts: string[] = [];
  if (id !== '') parts.push(`"id":${quote(id)}`);
  if (type !== '') parts.push(`"type":${quote(type)}`);
  if (properties !== undefined) parts.push(`"properties":${JSON.stringify(properties)}`);
  return `{${parts.join()}}`;
}
