/** Reads request bodies and query parameters against a schema, and names the field that does not fit. */
import { z } from 'zod';
import { type AgentIdentity, isName, isOpHalf, isOrgName, type OpId, opIdOf, parseOpId } from '../../core/base/ids.ts';
import { MAX_COST_USD, usdToMicro } from '../../core/base/money.ts';
import type { PageRequest } from '../../core/base/page.ts';
import { ok, type Result } from '../../core/base/result.ts';
import { msOfRfc3339 } from '../../core/base/time.ts';
import type { OrgFilter } from '../../core/commands.ts';
import { type Fault, invalid } from '../../core/fault.ts';
import { MAX_GLOB_LENGTH } from '../../core/policy/glob.ts';
import type { Link } from '../../use-cases/use-cases.ts';
import type { Authorized, HttpReply, QueryName } from '../engine/route.ts';
import { readBody } from '../shared/input.ts';
import { COST_RULE, NAME_RULE, OP_HALF_RULE, OP_ID_RULE, ORG_RULE } from '../shared/limits.ts';
import { DEFAULT_PER_PAGE, MAX_PER_PAGE } from '../shared/page-limits.ts';

/** The part of a row that says which body it takes, and reads it before the handler is asked. */
export const withBody = <Request extends { readonly body: unknown }>(
  body: z.ZodType<Request['body']>,
  handle: (request: Request, link: Link) => Promise<HttpReply>,
) => ({
  body,
  handle: async (request: Omit<Request, 'body'> & { readonly body: unknown }, link: Link): Promise<HttpReply> => {
    const read = readBody(body, request.body);
    return read.ok ? handle({ ...request, body: read.value } as Request, link) : read;
  },
});

/** As `optional`, with the value that then holds. */
export const optionalOr = <S extends z.ZodType>(schema: S, fallback: z.output<S>) =>
  schema
    .nullish()
    .meta({ default: fallback })
    .transform((value) => value ?? fallback);

/** A text that must satisfy a rule, which also becomes its description in the OpenAPI document. */
export const ruled = (isKept: (text: string) => boolean, rule: string) =>
  z.string().refine(isKept, rule).meta({ description: rule });

export const name = ruled(isName, NAME_RULE);

/** The wire form of an agent's identity. */
export const agentIdentity = z
  .strictObject({
    org_id: optionalOr(
      ruled((text) => text === '' || isOrgName(text), ORG_RULE),
      '',
    ),
    team_id: name,
    agent_id: name,
  })
  .transform(({ org_id, team_id, agent_id }): AgentIdentity => ({ orgId: org_id, teamId: team_id, agentId: agent_id }));

/** US dollars, to be read with `usdToMicro`. */
export const moneyUsd = z
  .number(COST_RULE)
  .refine((usd) => usdToMicro(usd) !== undefined, COST_RULE)
  .meta({ minimum: 0, maximum: MAX_COST_USD });

/** Fault: `invalid_argument`, which names `field`. */
export function readOpId(text: string, field = 'id'): Result<OpId, Fault> {
  const opId = parseOpId(text);
  return opId === undefined ? invalid(field, OP_ID_RULE) : ok(opId);
}

/** Fault: `invalid_argument`, which names the first half that is malformed. */
export function readOpHalves(traceId: string, spanId: string): Result<OpId, Fault> {
  const opId = opIdOf(traceId, spanId);
  return opId === undefined ? invalid(isOpHalf(traceId) ? 'span_id' : 'trace_id', OP_HALF_RULE) : ok(opId);
}

/** `?per_page=` and `?cursor=` of a listing (docs/spec.md, Lists and times). Fault: `invalid_argument`. */
export function readPage(query: URLSearchParams): Result<PageRequest, Fault> {
  const given = query.get('per_page');
  const perPage = given === null ? DEFAULT_PER_PAGE : /^\d{1,4}$/.test(given) ? Number(given) : 0;
  if (perPage < 1 || perPage > MAX_PER_PAGE)
    return invalid('per_page', `must be a whole number from 1 to ${MAX_PER_PAGE}`);
  // An empty cursor asks for the first page: a client that has none yet may send it.
  return ok({ perPage, cursor: query.get('cursor') || undefined });
}

/** Fields that all listings share: who asks, for which org, and for which page. */
export type Listing = OrgFilter & PageRequest;

/**
 * The part of a row that makes it a listing: it names the query parameters, and reads the org and the page before the
 * handler is asked. `more`: parameters of this listing alone, which its handler reads.
 */
export const withListing = (
  more: readonly QueryName[],
  handle: (listing: Listing, link: Link, request: Authorized) => Promise<HttpReply>,
) => ({
  query: ['org_id', ...more, 'per_page', 'cursor'] as const,
  handle: async (request: Authorized, link: Link): Promise<HttpReply> => {
    const { principal, query } = request;
    const page = readPage(query);
    return page.ok
      ? handle({ principal, orgId: query.get('org_id') ?? undefined, ...page.value }, link, request)
      : page;
  },
});

/**
 * Query parameters that name something; undefined if not given. Fault: `invalid_argument` for an empty one. Nothing has
 * an empty name, and a caller who sends one by mistake would take the answer to mean that nothing exists.
 */
export function readNames<F extends string>(
  query: URLSearchParams,
  fields: readonly F[],
): Result<{ readonly [field in F]?: string }, Fault> {
  const names: { [field in F]?: string } = {};
  for (const field of fields) {
    const given = query.get(field);
    if (given === '') return invalid(field, 'must not be empty; omit it to see all');
    if (given !== null) names[field] = given;
  }
  return ok(names);
}

/** As `readNames`, of patterns as rules have them. */
export function readGlobs<F extends string>(
  query: URLSearchParams,
  fields: readonly F[],
): Result<{ readonly [field in F]?: string }, Fault> {
  const globs = readNames(query, fields);
  if (!globs.ok) return globs;
  const long = fields.find((field) => (globs.value[field]?.length ?? 0) > MAX_GLOB_LENGTH);
  return long === undefined ? globs : invalid(long, `must be at most ${MAX_GLOB_LENGTH} characters`);
}

/** A query parameter that must be one of a few words; undefined when it is not given. */
export function readWord<T extends string>(
  query: URLSearchParams,
  field: string,
  words: readonly T[],
): Result<T | undefined, Fault> {
  const given = query.get(field);
  if (given === null || given === '') return ok(undefined);
  const word = words.find((candidate) => candidate === given);
  return word === undefined ? invalid(field, `must be one of ${words.join(', ')}`) : ok(word);
}

/** Words of a list, separated by commas; undefined when none is given. */
export function readWords<T extends string>(
  query: URLSearchParams,
  field: string,
  words: readonly T[],
): Result<readonly T[] | undefined, Fault> {
  const given = query.get(field);
  if (given === null || given === '') return ok(undefined);
  const found = given.split(',').map((text) => words.find((candidate) => candidate === text));
  return found.every((word) => word !== undefined)
    ? ok(found)
    : invalid(field, `must be one or more of ${words.join(', ')}, separated by commas`);
}

/** `?cascade=`: whether the keys and webhooks that somebody made end with their maker. */
export function readCascade(query: URLSearchParams): Result<boolean, Fault> {
  const cascade = readWord(query, 'cascade', ['true', 'false']);
  return cascade.ok ? ok(cascade.value !== 'false') : cascade;
}

const TIME_RULE = 'must be an RFC 3339 time such as 2026-01-31T12:00:00Z';

/** A field that holds a time, in milliseconds. */
export const time = z
  .string(TIME_RULE)
  .meta({ format: 'date-time' })
  .transform((text, context) => {
    const ms = msOfRfc3339(text);
    if (ms === undefined) context.addIssue(TIME_RULE);
    return ms ?? z.NEVER;
  });

/** A query parameter that holds a time, in milliseconds; undefined when it is not given. */
export function readTime(query: URLSearchParams, field: string): Result<number | undefined, Fault> {
  const given = query.get(field);
  if (given === null || given === '') return ok(undefined);
  const ms = msOfRfc3339(given);
  return ms === undefined
    ? invalid(field, given.includes(' ') ? `${TIME_RULE}; in a URL, write + as %2B` : TIME_RULE)
    : ok(ms);
}
