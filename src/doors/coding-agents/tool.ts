/** Types that the hooks of all coding agents share: an event in, and an answer in the agent's own words out. */
import { createHash } from 'node:crypto';
import { isOpHalf } from '../../core/base/ids.ts';
import { isMapping } from '../../core/base/mapping.ts';
import { ok, type Result } from '../../core/base/result.ts';
import { type Fault, invalid } from '../../core/fault.ts';
import { parseJsonText } from '../proto/json.ts';
import { readStructJson } from '../proto/json-values.ts';
import { attempt } from '../proto/schema.ts';

export type Fields = Readonly<Record<string, unknown>>;
export type Read<T> = Result<T, Fault>;

/** Something a tool call does, checked on its own. */
export type Subject = {
  readonly action: string;
  readonly resource: string;
  /** The arguments of the call, with digests in place of the contents of files. */
  readonly attributes: Fields;
};

/** A call of a tool. Each of its subjects is one operation. */
export type ToolCall = {
  readonly traceId: string;
  readonly spanId: string;
  /**
   * The agent gives its calls no id, so equal calls of a session have the same span. Later ones get a number: an
   * operation that has ended takes no further checks.
   */
  readonly isNumbered: boolean;
  readonly subjects: readonly Subject[];
  /** The arguments as the agent sent them. */
  readonly input: Fields;
};

/** An event around the call of a tool. */
export type ToolEvent =
  | {
      readonly kind: 'before';
      readonly name: string;
      readonly call: ToolCall;
      /** Whether the answer may change the arguments. */
      readonly isEditable: boolean;
      /** Nothing comes after it: the operation completes at once. */
      readonly isOnly: boolean;
    }
  /** The error is not passed on: such texts repeat the tool's output. */
  | { readonly kind: 'after'; readonly name: string; readonly call: ToolCall; readonly hasFailed: boolean };

/** `notice`: nothing is decided, and nothing changes, whatever the gateway answers. */
export type HookEvent = ToolEvent | { readonly kind: 'notice'; readonly name: string };

export type Answer =
  /** `input`: the arguments, if they were changed. */
  | { readonly kind: 'allow'; readonly input: Fields | undefined }
  | { readonly kind: 'deny'; readonly reason: string }
  /** An operator has ended the operation: the agent is to stop, too. */
  | { readonly kind: 'stop'; readonly reason: string };

export type HookTool = {
  /** As in the path of its route. */
  readonly name: string;
  /** How long it waits for an answer unless its settings say otherwise. */
  readonly timeoutSecs: number;
  read(body: Fields): Read<HookEvent>;
  /** Exactly the fields that the agent knows: some run the tool when there is any other. */
  answer(event: ToolEvent, answer: Answer): Fields;
};

export function readText(fields: Fields, name: string): Read<string> {
  const value = fields[name];
  return typeof value === 'string' && value !== '' ? ok(value) : invalid(name, 'must be a non-empty string');
}

/** Arguments: an object, or its JSON, within the limits of attributes. Absent: none. */
export function readInput(value: unknown, name: string): Read<Fields> {
  if (value === undefined || value === null || value === '') return ok({});
  // The parser of bodies looks at the number of values first: a megabyte of brackets would hold up the thread.
  const given = typeof value === 'string' ? attempt(() => parseJsonText(value, 0)) : ok(value);
  return given.ok && isMapping(given.value)
    ? attempt(() => readStructJson(given.value, name))
    : invalid(name, 'must be a JSON object');
}

/** An event that decides nothing, by its name. An event with a tool in it is none: it would have to be checked. */
export function readNotice(body: Fields, names: ReadonlySet<string>): Read<HookEvent> | undefined {
  const name = body.hook_event_name;
  if (typeof name !== 'string' || !names.has(name)) return undefined;
  return 'tool_name' in body
    ? invalid('tool_name', `must not be given in ${name}, which is not about a tool`)
    : ok({ kind: 'notice', name });
}

/** Half of the id of an operation. A text that cannot be one, such as one with a colon, is replaced by its digest. */
export const halfOf = (text: string): string =>
  isOpHalf(text) && text.length <= MAX_HALF ? text : digestOf(text).slice(0, 32);

/** Leaves room for the numbers that tell the operations of one call apart. */
const MAX_HALF = 240;

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');

/** The span of a call that has no id: equal calls have equal ones. */
export const spanOfCall = (scope: string, tool: string, input: Fields): string =>
  `${scope === '' ? '' : `${halfOf(scope)}.`}${digestOf(JSON.stringify([tool, input])).slice(0, 32)}`;
