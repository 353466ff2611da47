/** A filter, prepared for matching lines and searching indexes. */
import { AUDIT_EVENTS, type AuditFilter } from '../core/audit/audit.ts';
import { compileGlob, type Glob } from '../core/policy/glob.ts';
import { FIELD, type Field, hashOf, type LineScanner, tokenOf } from './scan.ts';

/** The fields an index knows the values of. */
export const INDEXED_FIELDS = [FIELD.orgId, FIELD.teamId, FIELD.agentId, FIELD.opId, FIELD.actor] as const;

/** A bit for each kind of entry; beyond 31, kinds share theirs: an index only says what need not be looked at. */
const KIND_BITS = 31;
const EVENT_BITS: ReadonlyMap<string, number> = new Map(
  AUDIT_EVENTS.map((event, index) => [`"${event}"`, 2 ** (index % KIND_BITS)]),
);
/** Stands for an event this version does not know, in a log written by another. */
const UNKNOWN_EVENT_BIT = 2 ** KIND_BITS;
const DECISION_BITS: ReadonlyMap<string, number> = new Map([
  ['"allow"', 1],
  ['"deny"', 2],
]);
const NO_DECISION_BIT = 4;

export const eventBit = (token: string): number => EVENT_BITS.get(token) ?? UNKNOWN_EVENT_BIT;
export const decisionBit = (token: string): number => DECISION_BITS.get(token) ?? NO_DECISION_BIT;

export type CompiledFilter = {
  /** `place` is the field's place among INDEXED_FIELDS. */
  readonly indexed: readonly { readonly place: number; readonly hash: number }[];
  readonly events: number;
  readonly decisions: number;
  readonly sinceMs: number;
  readonly untilMs: number;
  matches(line: LineScanner): boolean;
};

const ANY = 0xffffffff;
// The times that can be written with a four-digit year.
const EARLIEST_MS = Date.parse('0000-01-01T00:00:00.000Z');
const LATEST_MS = Date.parse('9999-12-31T23:59:59.999Z');

export function compileFilter(filter: AuditFilter): CompiledFilter {
  const tokens: { readonly field: Field; readonly token: string }[] = [];
  const need = (field: Field, value: string | undefined): void => {
    if (value !== undefined) tokens.push({ field, token: tokenOf(value) });
  };
  // The rarest field first, so that the first comparison rejects most lines.
  need(FIELD.opId, filter.opId);
  need(FIELD.agentId, filter.agentId);
  need(FIELD.actor, filter.actor);
  need(FIELD.orgId, filter.orgId);
  need(FIELD.ruleId, filter.ruleId);
  need(FIELD.cause, filter.cause);
  need(FIELD.policy, filter.policy);
  need(FIELD.teamId, filter.teamId);
  need(FIELD.decision, filter.decision);
  const events = filter.eventTypes?.map(tokenOf);
  const action = filter.action === undefined ? undefined : compileGlob(filter.action);
  const resource = filter.resource === undefined ? undefined : compileGlob(filter.resource);
  const since = filter.sinceMs === undefined ? undefined : stampToken(filter.sinceMs);
  const until = filter.untilMs === undefined ? undefined : stampToken(filter.untilMs);
  return {
    indexed: INDEXED_FIELDS.flatMap((field, place) => {
      const token = tokens.find((needed) => needed.field === field)?.token;
      return token === undefined ? [] : [{ place, hash: hashOf(token, 0, token.length) }];
    }),
    events: events === undefined ? ANY : events.reduce((bits, token) => bits | eventBit(token), 0) >>> 0,
    decisions: filter.decision === undefined ? ANY : decisionBit(tokenOf(filter.decision)),
    sinceMs: filter.sinceMs ?? -Infinity,
    untilMs: filter.untilMs ?? Infinity,
    matches(line) {
      for (const { field, token } of tokens) if (!line.is(field, token)) return false;
      if (events?.some((token) => line.is(FIELD.eventType, token)) === false) return false;
      // Stamps have one length, so their order as text is their order in time.
      if (since !== undefined && line.token(FIELD.timestamp) < since) return false;
      if (until !== undefined && line.token(FIELD.timestamp) >= until) return false;
      if (action === undefined && resource === undefined && filter.shadow === undefined) return true;
      const payload = line.payload();
      if (filter.shadow !== undefined && payload?.shadow === undefined) return false;
      return isIn(payload?.action, action) && isIn(payload?.resource, resource);
    },
  };
}

/** An entry about no action matches no pattern. */
const isIn = (value: unknown, glob: Glob | undefined): boolean =>
  glob === undefined || (typeof value === 'string' && glob.matches(value));

const stampToken = (ms: number): string =>
  `"${new Date(Math.min(Math.max(ms, EARLIEST_MS), LATEST_MS)).toISOString()}"`;
