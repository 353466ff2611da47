/** Reads the fields of events, and makes the ids of operations from them. */
import { hash } from 'node:crypto';
import { isOpHalf } from '../../core/base/ids.ts';
import { isMapping } from '../../core/base/mapping.ts';
import { ok } from '../../core/base/result.ts';
import { invalid } from '../../core/fault.ts';
import { parseJsonText } from '../proto/json.ts';
import { readStructJson } from '../proto/json-values.ts';
import { attempt } from '../proto/schema.ts';
import type { Fields, HookEvent, Read } from './tool.ts';

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

const digestOf = (text: string): string => hash('sha256', text, 'hex');

/** The span of a call that has no id: equal calls have equal ones. */
export const spanOfCall = (scope: string, tool: string, input: Fields): string =>
  `${scope === '' ? '' : `${halfOf(scope)}.`}${digestOf(JSON.stringify([tool, input])).slice(0, 32)}`;
