/** The contexts of AGENT-HOOKS-0.1 that a host sends, as far as the gateway decides about them. */
import { z } from 'zod';
import { isSameJson } from '../../core/base/mapping.ts';
import { ok, type Result } from '../../core/base/result.ts';
import { type Fault, invalid } from '../../core/fault.ts';
import { halfOf } from '../coding-agents/event-fields.ts';
import { readStructJson } from '../proto/json-values.ts';
import type { JsonObject } from '../proto/messages.ts';
import { attempt } from '../proto/schema.ts';
import { optional, readBody } from '../shared/input.ts';

const POINTS = [
  'agent_startup',
  'input',
  'pre_model_call',
  'post_model_call',
  'pre_tool_call',
  'post_tool_call',
  'output',
  'agent_shutdown',
] as const;

const toolCall = z.looseObject({ id: z.string().min(1), name: z.string().min(1), args: z.looseObject({}) });

/** Other fields, such as the messages of a model call, are neither judged nor logged. */
export const agentContext = z.looseObject({
  spec: z.literal('agent-hooks/0.1'),
  interception_point: z.enum(POINTS),
  agent: z.looseObject({ id: z.string().min(1), framework: z.string() }),
  session: z.looseObject({ id: z.string().min(1) }),
  tool_call: optional(toolCall),
  tool_result: optional(z.looseObject({ is_error: z.boolean() })),
});

type Op = { readonly traceId: string; readonly spanId: string };

export type Context =
  | { readonly point: 'before'; readonly tool: string; readonly args: JsonObject; readonly op: Op }
  | { readonly point: 'after'; readonly tool: string; readonly hasFailed: boolean; readonly op: Op }
  /** A point at which the gateway decides nothing. */
  | { readonly point: 'other' };

export function readContext(body: unknown): Result<Context, Fault> {
  const read = readBody(agentContext, body);
  if (!read.ok) return read;
  const { interception_point: point, session, tool_call: call, tool_result: result } = read.value;
  if (point !== 'pre_tool_call' && point !== 'post_tool_call') return ok({ point: 'other' });
  if (call === undefined) return invalid('tool_call', `is required at ${point}`);
  const op = { traceId: halfOf(session.id), spanId: halfOf(call.id) };
  if (point === 'post_tool_call') {
    if (result === undefined) return invalid('tool_result', 'is required at post_tool_call');
    return ok({ point: 'after', tool: call.name, hasFailed: result.is_error, op });
  }
  // The schema's copy would not have every member.
  const { tool_call: sent, target } = body as { readonly tool_call: { readonly args: unknown }; target?: unknown };
  const args = attempt(() => readStructJson(sent.args, 'tool_call.args'));
  if (!args.ok) return args;
  // The host runs the tool with the target: a rule must not be shown other arguments.
  const own = attempt(() => readStructJson(target ?? {}, 'target'));
  if (!own.ok) return own;
  if (!isSameJson(own.value, args.value)) return invalid('target', 'must be the arguments of tool_call');
  return ok({ point: 'before', tool: call.name, args: args.value, op });
}
