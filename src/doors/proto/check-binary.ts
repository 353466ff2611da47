/**
 * The binary codec of the check, written by hand because it is the hot path: it reads attributes straight into plain
 * JSON and is held to the schema by tests. StreamCheckActionsRequest has the same fields and is read by the same code.
 */

import { MAX_BATCH_ITEMS } from '../shared/limits.ts';
import { BinaryReader, WIRE_BYTES, WIRE_FIXED64, WIRE_VARINT } from './binary-reader.ts';
import type { BinaryWriter } from './binary-writer.ts';
import {
  type AgentId,
  CAUSE_WORDS,
  type CheckActionRequest,
  type CheckActionResponse,
  type CheckError,
  emptyCheck,
  type JsonObject,
  NO_ANSWER,
  type Obligation,
  type StreamCheckActionsResponse,
} from './messages.ts';
import { Malformed, tooMany } from './schema.ts';
import { type Allowance, allowanceFor, PROPERTIES, readStruct, writeStruct } from './struct.ts';
import { readTimestamp, writeTimestamp } from './timestamp.ts';

const tag = (field: number, wireType: number): number => (field << 3) | wireType;
const AGENT = tag(1, WIRE_BYTES);
const CREDENTIAL_TOKEN = tag(2, WIRE_BYTES);
const TRACE_ID = tag(3, WIRE_BYTES);
const SPAN_ID = tag(4, WIRE_BYTES);
const ACTION = tag(5, WIRE_BYTES);
const RESOURCE = tag(6, WIRE_BYTES);
const ATTRIBUTES = tag(7, WIRE_BYTES);
const ESTIMATED_COST_USD = tag(8, WIRE_FIXED64);
const CALLER = tag(9, WIRE_BYTES);
const DRY_RUN = tag(10, WIRE_VARINT);
const REQUEST_CORRELATION_ID = tag(11, WIRE_BYTES);
const SUPPORTED_OBLIGATIONS = tag(12, WIRE_BYTES);
const REQUEST_OP_HOME = tag(13, WIRE_BYTES);

/** Reads up to the end of the reader. */
export function readCheckActionRequest(reader: BinaryReader): CheckActionRequest {
  const message = emptyCheck();
  let allowance: Allowance | undefined; // of all parts that attributes come in
  const supportedObligations: string[] = [];
  while (reader.position < reader.end) {
    const tag = reader.tag();
    switch (tag) {
      case AGENT:
        message.agent = readAgentId(reader, message.agent, 'agent');
        break;
      case CREDENTIAL_TOKEN:
        message.credentialToken = reader.string('credential_token');
        break;
      case TRACE_ID:
        message.traceId = reader.string('trace_id');
        break;
      case SPAN_ID:
        message.spanId = reader.string('span_id');
        break;
      case ACTION:
        message.action = reader.string('action');
        break;
      case RESOURCE:
        message.resource = reader.string('resource');
        break;
      case ATTRIBUTES:
        message.attributes = readAttributes(reader, message.attributes, (allowance ??= allowanceFor('attributes')));
        break;
      case ESTIMATED_COST_USD:
        message.estimatedCostUsd = reader.double();
        break;
      case CALLER:
        message.caller = readAgentId(reader, message.caller, 'caller');
        break;
      case DRY_RUN:
        message.dryRun = reader.bool();
        break;
      case REQUEST_CORRELATION_ID:
        message.correlationId = reader.string('correlation_id');
        break;
      case SUPPORTED_OBLIGATIONS:
        if (supportedObligations.length === MAX_BATCH_ITEMS) throw tooMany('supported_obligations');
        supportedObligations.push(reader.string('supported_obligations'));
        break;
      case REQUEST_OP_HOME:
        message.opHome = reader.string('op_home');
        break;
      default:
        reader.skip(tag);
    }
  }
  if (supportedObligations.length > 0) message.supportedObligations = supportedObligations;
  return message;
}

/**
 * The correlation id of a request that cannot be read as a whole, so that the refusal can be matched to it; undefined
 * when not even that can be found.
 */
export function correlationIdOf(bytes: Buffer): string | undefined {
  try {
    const reader = new BinaryReader(bytes);
    let correlationId: string | undefined;
    while (reader.position < reader.end) {
      const tag = reader.tag();
      if (tag === REQUEST_CORRELATION_ID) correlationId = reader.string('correlation_id');
      else reader.skip(tag);
    }
    return correlationId;
  } catch (error) {
    if (!(error instanceof Malformed)) throw error;
    return undefined;
  }
}

/** A field that comes twice is merged, as the format demands. */
function readAgentId(reader: BinaryReader, known: AgentId | undefined, field: string): AgentId {
  let orgId = known?.orgId ?? '';
  let teamId = known?.teamId ?? '';
  let agentId = known?.agentId ?? '';
  const outer = reader.open();
  while (reader.position < reader.end) {
    const tag = reader.tag();
    switch (tag) {
      case 10:
        orgId = reader.string(`${field}.org_id`);
        break;
      case 18:
        teamId = reader.string(`${field}.team_id`);
        break;
      case 26:
        agentId = reader.string(`${field}.agent_id`);
        break;
      default:
        reader.skip(tag);
    }
  }
  reader.close(outer);
  return { orgId, teamId, agentId };
}

function readAttributes(reader: BinaryReader, known: JsonObject | undefined, allowance: Allowance): JsonObject {
  const outer = reader.open();
  const attributes = readStruct(reader, allowance, 1, known);
  reader.close(outer);
  return attributes;
}

export function writeCheckActionRequest(writer: BinaryWriter, request: CheckActionRequest): void {
  if (request.agent !== undefined) writeAgentId(writer, AGENT, request.agent);
  writeText(writer, CREDENTIAL_TOKEN, request.credentialToken);
  writeText(writer, TRACE_ID, request.traceId);
  writeText(writer, SPAN_ID, request.spanId);
  writeText(writer, ACTION, request.action);
  writeText(writer, RESOURCE, request.resource);
  if (request.attributes !== undefined) {
    writer.uint32(ATTRIBUTES);
    const start = writer.open();
    writeStruct(writer, request.attributes, allowanceFor('attributes'));
    writer.close(start);
  }
  // Negative zero is not the default value: it goes over the wire as what it is.
  if (!Object.is(request.estimatedCostUsd, 0)) {
    writer.uint32(ESTIMATED_COST_USD);
    writer.double(request.estimatedCostUsd);
  }
  if (request.caller !== undefined) writeAgentId(writer, CALLER, request.caller);
  if (request.dryRun) {
    writer.uint32(DRY_RUN);
    writer.uint32(1);
  }
  writeText(writer, REQUEST_CORRELATION_ID, request.correlationId);
  for (const type of request.supportedObligations) {
    writer.uint32(SUPPORTED_OBLIGATIONS);
    writer.string(type);
  }
  writeText(writer, REQUEST_OP_HOME, request.opHome);
}

function writeAgentId(writer: BinaryWriter, tag: number, agent: AgentId): void {
  writer.uint32(tag);
  const start = writer.open();
  writeText(writer, 10, agent.orgId);
  writeText(writer, 18, agent.teamId);
  writeText(writer, 26, agent.agentId);
  writer.close(start);
}

const DECISION_BY_NUMBER = ['unspecified', 'allow', 'deny', 'pending'] as const;
const OP_STATE_BY_NUMBER = ['unspecified', 'pending', 'running', 'paused', 'completing', 'terminated'] as const;
const TIER_BY_NUMBER = ['unspecified', 'global', 'org', 'team', 'agent'] as const;
const PERIOD_BY_NUMBER = ['unspecified', 'monthly', 'daily'] as const;

const DECISION = tag(1, WIRE_VARINT);
const REASON = tag(2, WIRE_BYTES);
const POLICY = tag(3, WIRE_BYTES);
const RULE_ID = tag(4, WIRE_BYTES);
const OP_ID = tag(5, WIRE_BYTES);
const OP_STATE = tag(6, WIRE_VARINT);
const AUDIT_ID = tag(7, WIRE_VARINT);
const RESPONSE_CORRELATION_ID = tag(8, WIRE_BYTES);
const ERROR = tag(9, WIRE_BYTES);
const CAUSE = tag(10, WIRE_VARINT);
const TIER = tag(11, WIRE_VARINT);
const PERIOD = tag(12, WIRE_VARINT);
const RESETS_AT = tag(13, WIRE_BYTES);
const APPROVAL_ID = tag(14, WIRE_BYTES);
const OBLIGATIONS = tag(15, WIRE_BYTES);
const RESPONSE_OP_HOME = tag(16, WIRE_BYTES);
const REMEDY = tag(17, WIRE_BYTES);

export function writeCheckActionResponse(writer: BinaryWriter, response: CheckActionResponse): void {
  writeChoice(writer, DECISION, DECISION_BY_NUMBER.indexOf(response.decision));
  writeText(writer, REASON, response.reason);
  writeText(writer, POLICY, response.policy);
  writeText(writer, RULE_ID, response.ruleId);
  writeText(writer, OP_ID, response.opId);
  writeChoice(writer, OP_STATE, OP_STATE_BY_NUMBER.indexOf(response.opState));
  if (response.auditId !== 0) {
    writer.uint32(AUDIT_ID);
    writer.uint64(response.auditId);
  }
  writeText(writer, RESPONSE_CORRELATION_ID, response.correlationId);
  writeChoice(writer, CAUSE, CAUSE_WORDS.indexOf(response.cause));
  writeChoice(writer, TIER, TIER_BY_NUMBER.indexOf(response.tier));
  writeChoice(writer, PERIOD, PERIOD_BY_NUMBER.indexOf(response.period));
  if (response.resetsAt !== undefined) {
    writer.uint32(RESETS_AT);
    const start = writer.open();
    writeTimestamp(writer, response.resetsAt);
    writer.close(start);
  }
  writeText(writer, APPROVAL_ID, response.approvalId);
  for (const obligation of response.obligations) writeObligation(writer, obligation);
  writeText(writer, RESPONSE_OP_HOME, response.opHome);
  writeText(writer, REMEDY, response.remedy);
}

function writeObligation(writer: BinaryWriter, { id, type, properties }: Obligation): void {
  writer.uint32(OBLIGATIONS);
  const start = writer.open();
  writeText(writer, 10, id);
  writeText(writer, 18, type);
  if (properties !== undefined) {
    writer.uint32(26);
    const struct = writer.open();
    writeStruct(writer, properties, allowanceFor('properties'));
    writer.close(struct);
  }
  writer.close(start);
}

function readObligation(reader: BinaryReader): Obligation {
  let id = '';
  let type = '';
  let properties: JsonObject | undefined;
  const outer = reader.open();
  while (reader.position < reader.end) {
    const tag = reader.tag();
    if (tag === 10) id = reader.string('obligations.id');
    else if (tag === 18) type = reader.string('obligations.type');
    else if (tag === 26)
      properties = readAttributes(reader, properties, allowanceFor('obligations.properties', PROPERTIES));
    else reader.skip(tag);
  }
  reader.close(outer);
  return { id, type, properties };
}

function readResetsAt(reader: BinaryReader): number {
  const outer = reader.open();
  const ms = readTimestamp(reader, 'resets_at');
  reader.close(outer);
  return ms;
}

export function writeStreamCheckActionsResponse(writer: BinaryWriter, response: StreamCheckActionsResponse): void {
  writeCheckActionResponse(writer, response);
  if (response.error !== undefined) writeCheckError(writer, response.error);
}

function writeCheckError(writer: BinaryWriter, error: CheckError): void {
  writer.uint32(ERROR);
  const start = writer.open();
  writeText(writer, 10, error.code);
  writeText(writer, 18, error.message);
  writeChoice(writer, 24, error.retryAfterSecs);
  writer.close(start);
}

/** Reads up to the end of the reader. A decision of a newer schema reads as `unspecified`, which allows nothing. */
export function readCheckActionResponse(reader: BinaryReader): CheckActionResponse {
  const response: Writable<CheckActionResponse> = { ...NO_ANSWER };
  while (reader.position < reader.end) {
    const tag = reader.tag();
    switch (tag) {
      case DECISION:
        response.decision = DECISION_BY_NUMBER[reader.uint32()] ?? 'unspecified';
        break;
      case REASON:
        response.reason = reader.string('reason');
        break;
      case POLICY:
        response.policy = reader.string('policy');
        break;
      case RULE_ID:
        response.ruleId = reader.string('rule_id');
        break;
      case OP_ID:
        response.opId = reader.string('op_id');
        break;
      case OP_STATE:
        response.opState = OP_STATE_BY_NUMBER[reader.uint32()] ?? 'unspecified';
        break;
      case AUDIT_ID:
        response.auditId = reader.uint64('audit_id');
        break;
      case RESPONSE_CORRELATION_ID:
        response.correlationId = reader.string('correlation_id');
        break;
      case CAUSE:
        response.cause = CAUSE_WORDS[reader.uint32()] ?? 'unspecified';
        break;
      case TIER:
        response.tier = TIER_BY_NUMBER[reader.uint32()] ?? 'unspecified';
        break;
      case PERIOD:
        response.period = PERIOD_BY_NUMBER[reader.uint32()] ?? 'unspecified';
        break;
      case RESETS_AT:
        response.resetsAt = readResetsAt(reader);
        break;
      case APPROVAL_ID:
        response.approvalId = reader.string('approval_id');
        break;
      case OBLIGATIONS:
        response.obligations = [...response.obligations, readObligation(reader)];
        break;
      case RESPONSE_OP_HOME:
        response.opHome = reader.string('op_home');
        break;
      case REMEDY:
        response.remedy = reader.string('remedy');
        break;
      default:
        reader.skip(tag);
    }
  }
  return response;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

function writeText(writer: BinaryWriter, tag: number, text: string): void {
  if (text === '') return;
  writer.uint32(tag);
  writer.string(text);
}

function writeChoice(writer: BinaryWriter, tag: number, number: number): void {
  if (number <= 0) return;
  writer.uint32(tag);
  writer.uint32(number);
}
