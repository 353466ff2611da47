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
  type AgentId,
  type CheckActionRequest,
  type CheckActionResponse,
  DECISION_CAUSES,
  type JsonObject,
  type Obligation,
} from './messages.ts';
import { Malformed } from './schema.ts';
import { timestampText } from './timestamp.ts';

const NO_TEXTS: readonly string[] = [];

/** `path` is where the message lies: empty, or `requests[3].`. */
export function readCheckActionRequestJson(value: unknown, path: string): CheckActionRequest {
  const source = jsonObject(value, path);
  let agent: AgentId | undefined;
  let credentialToken = '';
  let traceId = '';
  let spanId = '';
  let action = '';
  let resource = '';
  let attributes: JsonObject | undefined;
  let estimatedCostUsd = 0;
  let caller: AgentId | undefined;
  let dryRun = false;
  let correlationId = '';
  let supportedObligations = NO_TEXTS;
  let opHome = '';
  let seen = 0;
  for (const key in source) {
    const item = source[key];
    let bit = 0;
    switch (key) {
      case 'agent':
        bit = 1;
        if (item !== null) agent = readAgentIdJson(item, `${path}agent`);
        break;
      case 'credentialToken':
      case 'credential_token':
        bit = 2;
        credentialToken = readStringJson(item, path, 'credential_token');
        break;
      case 'traceId':
      case 'trace_id':
        bit = 4;
        traceId = readStringJson(item, path, 'trace_id');
        break;
      case 'spanId':
      case 'span_id':
        bit = 8;
        spanId = readStringJson(item, path, 'span_id');
        break;
      case 'action':
        bit = 16;
        action = readStringJson(item, path, 'action');
        break;
      case 'resource':
        bit = 32;
        resource = readStringJson(item, path, 'resource');
        break;
      case 'attributes':
        bit = 64;
        if (item !== null) attributes = readStructJson(item, `${path}attributes`);
        break;
      case 'estimatedCostUsd':
      case 'estimated_cost_usd':
        bit = 128;
        estimatedCostUsd = readDoubleJson(item, path, 'estimated_cost_usd');
        break;
      case 'caller':
        bit = 256;
        if (item !== null) caller = readAgentIdJson(item, `${path}caller`);
        break;
      case 'dryRun':
      case 'dry_run':
        bit = 512;
        dryRun = readBoolJson(item, path, 'dry_run');
        break;
      case 'correlationId':
      case 'correlation_id':
        bit = 1024;
        correlationId = readStringJson(item, path, 'correlation_id');
        break;
      case 'supportedObligations':
      case 'supported_obligations':
        bit = 2048;
        if (item !== null) supportedObligations = readStringsJson(item, `${path}supported_obligations`);
        break;
      case 'opHome':
      case 'op_home':
        bit = 4096;
        opHome = readStringJson(item, path, 'op_home');
        break;
      default:
        throw unknownField(path, key, 'CheckActionRequest');
    }
    if ((seen & bit) !== 0) throw new Malformed(path + key, 'is given under both of its names');
    seen |= bit;
  }
  return {
    agent,
    credentialToken,
    traceId,
    spanId,
    action,
    resource,
    attributes,
    estimatedCostUsd,
    caller,
    dryRun,
    correlationId,
    supportedObligations,
    opHome,
  };
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
  DECISION_CAUSES.map((cause) => [cause, `,"cause":"DECISION_CAUSE_${cause.toUpperCase()}"`]),
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
  return `${json}}`;
}

function obligationJson({ id, type, properties }: Obligation): string {
  const parts: string[] = [];
  if (id !== '') parts.push(`"id":${quote(id)}`);
  if (type !== '') parts.push(`"type":${quote(type)}`);
  if (properties !== undefined) parts.push(`"properties":${JSON.stringify(properties)}`);
  return `{${parts.join()}}`;
}
