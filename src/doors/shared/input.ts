/** Reads input against a schema, or a list of parameters; a refusal names the field that does not fit. */
import type { z } from 'zod';
import { isMapping, nearest } from '../../core/base/mapping.ts';
import { ok, type Result } from '../../core/base/result.ts';
import { cutText } from '../../core/base/text.ts';
import { type Fault, invalid } from '../../core/fault.ts';
import type { JsonObject } from '../proto/messages.ts';

/** In characters: the name of an unknown field is chosen by the caller. */
const MAX_SHOWN_KEY = 64;

/** No body counts as `{}`. Fault: `invalid_argument`, with the path of the first field that does not fit. */
export function readBody<S extends z.ZodType>(schema: S, body: unknown): Result<z.output<S>, Fault> {
  const parsed = schema.safeParse(body === undefined ? {} : body, { error: explainType });
  if (parsed.success) return ok(parsed.data);
  const issue = parsed.error.issues[0];
  const isUnknownKey = issue?.code === 'unrecognized_keys';
  const path = isUnknownKey ? [...issue.path, cutText(issue.keys[0] ?? '', MAX_SHOWN_KEY)] : (issue?.path ?? []);
  return invalid(path.join('.') || 'body', isUnknownKey ? 'unknown field' : (issue?.message ?? 'is invalid'));
}

/** The problem in the words of this API; undefined leaves the wording to the library. */
function explainType(issue: {
  readonly code?: string | undefined;
  readonly expected?: unknown;
  readonly input?: unknown;
}): string | undefined {
  if (issue.code !== 'invalid_type') return undefined;
  return issue.input === undefined
    ? 'is required'
    : `must be ${TYPE_IN_WORDS[String(issue.expected)] ?? String(issue.expected)}`;
}

const TYPE_IN_WORDS: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  boolean: 'true or false',
  object: 'a JSON object',
  array: 'a list',
};

/** A field that may be left out. Null is the same: many clients send it for what they do not have. */
export const optional = <S extends z.ZodType>(schema: S) => schema.nullish().transform((value) => value ?? undefined);

/**
 * Refuses duplicate parameters. Only one of the two could count, while the sender takes the answer to be about both.
 */
export function refuseRepeated(
  query: URLSearchParams,
  names: readonly string[] = [],
): Result<never, Fault> | undefined {
  const repeated = names.find((candidate) => query.getAll(candidate).length > 1);
  return repeated === undefined ? undefined : invalid(repeated, 'is given more than once');
}

/** Refuses a parameter that the route does not read: what it was to leave out would be in the answer. */
export function refuseUnknown(query: URLSearchParams, known: readonly string[] = []): Result<never, Fault> | undefined {
  for (const name of query.keys()) {
    if (known.includes(name)) continue;
    const guess = nearest(name, known);
    const parameters = known.length === 0 ? 'this route takes no parameters' : `this route takes ${known.join(', ')}`;
    return invalid(
      cutText(name, MAX_SHOWN_KEY) || '(empty)',
      `unknown parameter; ${guess === undefined ? parameters : `did you mean ${guess}?`}`,
    );
  }
  return undefined;
}

// Members of a usual body. Doors that are asked as often as checks are look for it before they walk their schema, which
// then reads, and explains, whatever else comes.

export const isTextOrNone = (value: unknown): value is string | null | undefined =>
  value === undefined || value === null || typeof value === 'string';
export const isMappingOrNone = (value: unknown): value is JsonObject | null | undefined =>
  value === undefined || value === null || isMapping(value);
export const areTextsOrNone = (value: unknown): value is readonly string[] | null | undefined =>
  value === undefined || value === null || (Array.isArray(value) && value.every((item) => typeof item === 'string'));

/** The text under these names, for the record of a body that does not fit; '' where there is none. */
export function textAt(value: unknown, ...names: readonly string[]): string {
  let part = value;
  for (const name of names) part = isMapping(part) ? part[name] : undefined;
  return typeof part === 'string' ? part : '';
}
