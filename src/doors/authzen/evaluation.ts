/** Parses requests of AuthZEN 1.0: one evaluation, or many with defaults. Knows nothing of the caller. */
import { z } from 'zod';
import { isMapping } from '../../core/base/mapping.ts';
import { ok, type Result } from '../../core/base/result.ts';
import { type Fault, invalid } from '../../core/fault.ts';
import { readStructJson } from '../proto/json-values.ts';
import type { JsonObject } from '../proto/messages.ts';
import { attempt } from '../proto/schema.ts';
import type { Question } from '../rpc/judge.ts';
import { isMappingOrNone, optional, readBody, textAt } from '../shared/input.ts';
import { MAX_BATCH_BYTES, MAX_BATCH_ITEMS } from '../shared/limits.ts';
import { areQuestionFields, type QuestionFields, questionFields } from '../shared/question-shapes.ts';

const properties = optional(z.looseObject({}));

/** Members that we do not know are ignored, as the standard says. */
export const evaluation = z.looseObject({
  subject: z.looseObject({
    type: z.string().meta({ description: '`agent`, or the word of the application for its users.' }),
    id: z.string().meta({ description: 'Of type `agent`: `<org>/<team>/<agent>`.' }),
    properties,
  }),
  action: z.looseObject({ name: z.string(), properties }),
  resource: z.looseObject({ type: z.string(), id: z.string(), properties }),
  context: optional(z.looseObject(questionFields)),
});

const SEMANTICS = ['execute_all', 'deny_on_first_deny', 'permit_on_first_permit'] as const;
export type Semantic = (typeof SEMANTICS)[number];

const { subject, action, resource, context } = evaluation.shape;

/** Keys that an item of `evaluations` lacks are taken whole from beside the list. */
export const evaluations = z.looseObject({
  subject: optional(subject),
  action: optional(action),
  resource: optional(resource),
  context,
  options: optional(z.looseObject({ evaluations_semantic: optional(z.enum(SEMANTICS)) })),
  evaluations: optional(z.array(z.unknown()).max(MAX_BATCH_ITEMS)).meta({
    description: `Up to ${MAX_BATCH_ITEMS} evaluations, each with the members that differ.`,
  }),
});

const MEMBERS = ['subject', 'action', 'resource', 'context'] as const;

export type Evaluation = {
  /** Whom the subject names, if it is one of our agents. */
  readonly agent: string | undefined;
  readonly question: Question;
};

export function readEvaluation(body: unknown): Result<Evaluation, Fault> {
  const read = isUsual(body) ? ok(body) : readBody(evaluation, body);
  if (!read.ok) return read;
  const { subject, action, resource, context } = read.value;
  const op = readOp(context?.trace_id ?? undefined, context?.span_id ?? undefined);
  if (!op.ok) return op;
  // As it was sent: the schema's copy would not have every member.
  const sent = body as JsonObject;
  const all = {
    subject: sent['subject'] ?? {},
    action: sent['action'] ?? {},
    resource: sent['resource'] ?? {},
    context: sent['context'] ?? {},
  };
  const attributes = attempt(() => readStructJson(all, 'evaluation'));
  if (!attributes.ok) return attributes;
  return ok({
    agent: subject.type === 'agent' ? subject.id : undefined,
    question: {
      action: action.name,
      resource: resource.id,
      attributes: attributes.value,
      op: op.value,
      supportedObligations: context?.supported_obligations ?? [],
    },
  });
}

type Usual = {
  readonly subject: { readonly type: string; readonly id: string };
  readonly action: { readonly name: string };
  readonly resource: { readonly type: string; readonly id: string };
  readonly context?: QuestionFields | null | undefined;
};

function isUsual(body: unknown): body is Usual {
  if (!isMapping(body)) return false;
  const { subject, action, resource, context } = body;
  return (
    isTyped(subject) &&
    isMapping(action) &&
    typeof action['name'] === 'string' &&
    isMappingOrNone(action['properties']) &&
    isTyped(resource) &&
    isMappingOrNone(context) &&
    areQuestionFields(context ?? {})
  );
}

const isTyped = (entity: unknown): boolean =>
  isMapping(entity) &&
  typeof entity['type'] === 'string' &&
  typeof entity['id'] === 'string' &&
  isMappingOrNone(entity['properties']);

function readOp(traceId: string | undefined, spanId: string | undefined): Result<Question['op'], Fault> {
  if (traceId === undefined && spanId === undefined) return ok(undefined);
  if (traceId === undefined || spanId === undefined)
    return invalid(
      `context.${traceId === undefined ? 'trace_id' : 'span_id'}`,
      'is required beside the other half; send both to begin an operation, or neither',
    );
  return ok({ traceId, spanId });
}

/** The parts that can be read of a malformed request; '' for the others. */
export type Legible = { readonly action: string; readonly resource: string };

export const legibleIn = (body: unknown): Legible => ({
  action: textAt(body, 'action', 'name'),
  resource: textAt(body, 'resource', 'id'),
});

/** An item is broken where it cannot be read. */
export type Item = { readonly evaluation: Evaluation } | { readonly fault: Fault; readonly legible: Legible };

export type Batch = { readonly semantic: Semantic; readonly items: readonly Item[] };

/** The items of a batch, each read by itself; undefined for a request without any, which is a single evaluation. */
export function readBatch(body: unknown, bytes: number): Result<Batch | undefined, Fault> {
  if (isMapping(body) && Array.isArray(body['evaluations']) && body['evaluations'].length > MAX_BATCH_ITEMS)
    return invalid('evaluations', `must have at most ${MAX_BATCH_ITEMS} items`);
  // Defaults may be of any shape as long as no item falls back on them.
  const lists = readBody(evaluations.pick({ options: true, evaluations: true }), body);
  if (!lists.ok) return lists;
  const { options, evaluations: items = [] } = lists.value;
  if (items.length === 0) return ok(undefined);
  const defaults = body as JsonObject;
  if (bytesWithDefaults(defaults, items, bytes) > MAX_BATCH_BYTES)
    return invalid('evaluations', `must, with their defaults filled in, be at most ${MAX_BATCH_BYTES} bytes`);
  return ok({
    semantic: options?.evaluations_semantic ?? 'execute_all',
    items: items.map((item, index) => readItem(defaults, item, index)),
  });
}

/** A megabyte of defaults and a thousand empty items would be a gigabyte of checks. */
function bytesWithDefaults(defaults: JsonObject, items: readonly unknown[], bytes: number): number {
  let total = bytes;
  for (const name of MEMBERS) {
    if (!Object.hasOwn(defaults, name)) continue;
    const size = JSON.stringify(defaults[name]).length;
    total += size * items.filter((item) => !isMapping(item) || !Object.hasOwn(item, name)).length;
  }
  return total;
}

function readItem(defaults: JsonObject, item: unknown, index: number): Item {
  const place = `evaluations[${index}]`;
  if (!isMapping(item))
    return {
      fault: { kind: 'invalid_argument', field: place, problem: 'must be a JSON object' },
      legible: legibleIn(item),
    };
  const members = MEMBERS.flatMap((name) => {
    const holder = Object.hasOwn(item, name) ? item : Object.hasOwn(defaults, name) ? defaults : undefined;
    return holder === undefined ? [] : [[name, holder[name]] as const];
  });
  const whole = Object.fromEntries(members);
  const read = readEvaluation(whole);
  if (read.ok) return { evaluation: read.value };
  const { fault } = read;
  const placed = fault.kind === 'invalid_argument' ? { ...fault, field: `${place}.${fault.field}` } : fault;
  return { fault: placed, legible: legibleIn(whole) };
}
