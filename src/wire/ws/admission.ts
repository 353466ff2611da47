/** Who may open a stream, and what it shows (contract: WebSocket). */
import type { Fault } from '../../core/fault.ts';
import { isOrgName } from '../../core/ids.ts';
import { fail, ok, type Result } from '../../core/result.ts';
import { holds, seesOrg, type Principal } from '../../core/scope.ts';
import { EVENT_KINDS, type EventKind } from '../../gateway/events.ts';
import type { Interest } from './channel.ts';

export type StreamQuery = { readonly orgId: string | undefined; readonly kinds: ReadonlySet<EventKind> | undefined; readonly snapshot: boolean; readonly lineage: boolean };

export function readStreamQuery(query: URLSearchParams): Result<StreamQuery, Fault> {
  const orgId = query.get('org_id') || undefined;
  if (orgId !== undefined && !isOrgName(orgId)) return invalid('org_id', 'is not the name of an org');
  const snapshot = readFlag(query, 'snapshot');
  if (!snapshot.ok) return snapshot;
  const lineage = readFlag(query, 'lineage');
  if (!lineage.ok) return lineage;
  const words = (query.get('types') ?? '').split(',').map((word) => word.trim()).filter((word) => word !== '');
  const unknown = words.find((word) => !isEventKind(word));
  if (unknown !== undefined) return invalid('types', `${JSON.stringify(unknown)} is not one of ${EVENT_KINDS.join(', ')}`);
  return ok({ orgId, kinds: words.length === 0 ? undefined : new Set(words.filter(isEventKind)), snapshot: snapshot.value, lineage: lineage.value });
}

/** Not given: false. */
function readFlag(query: URLSearchParams, name: 'snapshot' | 'lineage'): Result<boolean, Fault> {
  const word = query.get(name) || 'false';
  return word === 'true' || word === 'false' ? ok(word === 'true') : invalid(name, 'must be true or false');
}

/**
 * What this principal is shown of what it asked for. A credential that is bound to an org sees that org alone; `account`
 * events name people, so they are for administrators.
 */
export function interestOf(principal: Principal, { orgId, kinds, lineage }: StreamQuery): Result<Interest, Fault> {
  const { scopes } = principal;
  if (!holds(scopes, 'read')) return fail({ kind: 'insufficient_scope', needed: 'read', held: scopes });
  if (orgId !== undefined && !seesOrg(principal, orgId)) return fail({ kind: 'org_forbidden', orgId });
  const isAdmin = holds(scopes, 'admin');
  if (kinds?.has('account') === true && !isAdmin) return fail({ kind: 'insufficient_scope', needed: 'admin', held: scopes });
  return ok({ orgId: orgId ?? principal.orgId, kinds: kinds ?? (isAdmin ? ALL_KINDS : KINDS_FOR_READERS), lineage });
}

/** Pages of other sites must not open streams. What is no browser sends no Origin. */
export function isOwnOrigin(origin: string | undefined, host: string | undefined, allowed: readonly string[]): boolean {
  if (origin === undefined || allowed.includes(origin)) return true;
  return URL.canParse(origin) && new URL(origin).host === host?.toLowerCase();
}

const isEventKind = (word: string): word is EventKind => (EVENT_KINDS as readonly string[]).includes(word);
const ALL_KINDS: ReadonlySet<EventKind> = new Set(EVENT_KINDS);
const KINDS_FOR_READERS: ReadonlySet<EventKind> = new Set(EVENT_KINDS.filter((kind) => kind !== 'account'));

const invalid = (field: string, problem: string) => fail({ kind: 'invalid_argument', field, problem } as const);
