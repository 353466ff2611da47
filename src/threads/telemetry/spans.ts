/** A check as a span, with the attributes of the semantic conventions for generative AI (docs/opentelemetry.md). */
import {
  type Attributes,
  type Context,
  type Link,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { redactShort } from '../../core/audit/redact-text.ts';
import type { CheckRecord } from './messages.ts';

/** In characters. */
const MAX_NAME = 128;
const MAX_TEXT = 1_024;

/** Matches a header of W3C Trace Context, of this version and later ones. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/;
const OP_ID = /^(?!0{32})([0-9a-f]{32}):(?!0{16})([0-9a-f]{16})$/;

/** Undefined: there is none, or it is malformed. */
export function contextOfHeader(traceparent: string | undefined): SpanContext | undefined {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(traceparent ?? '') ?? [];
  if (traceId === undefined || spanId === undefined) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags!, 16) & TraceFlags.SAMPLED, isRemote: true };
}

/** An operation is named by a trace and a span of the agent, where it follows W3C Trace Context. */
function contextOfOp(opId: string): SpanContext | undefined {
  const [, traceId, spanId] = OP_ID.exec(opId) ?? [];
  if (traceId === undefined || spanId === undefined) return undefined;
  return { traceId, spanId, traceFlags: TraceFlags.SAMPLED, isRemote: true };
}

/** The caller's own context counts; without one, the operation says which trace the check belongs to. */
function parentOf(record: CheckRecord): { readonly context: Context; readonly links: Link[] } {
  const [caller, op] = [contextOfHeader(record.traceparent), contextOfOp(record.opId)];
  const parent = caller ?? op;
  const context = parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent);
  const isElsewhere = caller !== undefined && op !== undefined && op.spanId !== caller.spanId;
  return { context, links: isElsewhere ? [{ context: op }] : [] };
}

/** Starts and ends it. False: it was not sampled. */
export function endedSpan(tracer: Tracer, record: CheckRecord): boolean {
  const { context, links } = parentOf(record);
  const action = redactShort(record.action, MAX_NAME);
  const options = {
    kind: SpanKind.SERVER,
    startTime: record.startMs,
    attributes: attributesOf(record, action),
    links,
  };
  const span = tracer.startSpan(`check ${action}`, options, context);
  if (!span.isRecording()) return false;
  if (record.decision === 'pending')
    span.addEvent('svc.approval.requested', defined({ 'svc.approval.id': record.approvalId }), record.endMs);
  if (record.fault !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: record.fault });
  span.end(record.endMs);
  return true;
}

/** Texts are redacted as the audit log has them. */
const attributesOf = (record: CheckRecord, action: string): Attributes =>
  defined({
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': action,
    'gen_ai.agent.id': `${record.orgId}/${record.teamId}/${record.agentId}`,
    'gen_ai.agent.name': record.agentId,
    'gen_ai.external_ref': record.auditId === undefined ? undefined : String(record.auditId),
    'svc.op.id': redactShort(record.opId, MAX_TEXT),
    'svc.org.id': record.orgId,
    'svc.team.id': record.teamId,
    'svc.resource': redactShort(record.resource, MAX_TEXT),
    'svc.decision': record.decision,
    'svc.decision.reason': record.reason === undefined ? undefined : redactShort(record.reason, MAX_TEXT),
    'svc.decision.cause': record.cause,
    'svc.policy': record.policy,
    'svc.rule.id': record.ruleId,
    'svc.approval.id': record.approvalId,
    'svc.approval.state': record.decision === 'pending' ? 'pending' : undefined,
    'svc.dry_run': record.isDryRun ? true : undefined,
    'svc.gateway': record.home,
    'error.type': record.fault,
  });

const defined = (attributes: Attributes): Attributes =>
  Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined));
