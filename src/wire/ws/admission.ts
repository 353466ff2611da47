/** Decides who may open a stream and what it shows (contract: WebSocket). */
import { type Fault, invalid } from '../../core/fault.ts';
import { isOrgName } from '../../core/ids.ts';
import { fail, ok, type Result } from '../../core/result.ts';
import { type Principal, refuseWithout, seesOrg } from '../../core/scope.ts';
import { EVENT_KINDS, type EventKind } from '../../gateway/events.ts';
import { refuseRepeated } from '../http/body.ts';
import { STREAM_QUERY } from '../http/stream.ts';
import type { ReaderInterest } from './channel.ts';

export type StreamQuery = {
  readonly orgId: string | undefined;
  readonly kinds: ReadonlySet<EventKind> | undefined;
  readonly snapshot: boolean;
  readonly lineage: boolean;
};

/** Fault: `invalid_argument`. */
export function readStreamQuery(query: URLSearchParams): Result<StreamQuery, Fault> {
  const repeated = refuseRepeated(query, STREAM_QUERY);
  if (repeated !== undefined) return repeated;
  const orgId = query.get('org_id') ?? undefined; // an empty one is refused below: a client that meant an org must not see all
  if (orgId !== undefined && !isOrgName(orgId)) return invalid('org_id', 'is not a valid org name');
  const snapshot = readFlag(query, 'snapshot');
  if (!snapshot.ok) return snapshot;
  const lineage = readFlag(query, 'lineage');
  if (!lineage.ok) return lineage;
  const words = (query.get('types') ?? '')
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');
  const unknown = words.find((word) => !isEventKind(word));
  if (unknown !== undefined)
    return invalid('types', `${JSON.stringify(unknown)} is not one of ${EVENT_KINDS.join(', ')}`);
  return ok({
    orgId,
    kinds: words.length === 0 ? undefined : new Set(words.filter(isEventKind)),
    snapshot: snapshot.value,
    lineage: lineage.value,
  });
}

/** Not given: false. */
function readFlag(query: URLSearchParams, name: 'snapshot' | 'lineage'): Result<boolean, Fault> {
  const word = query.get(name) || 'false';
  return word === 'true' || word === 'false' ? ok(word === 'true') : invalid(name, 'must be true or false');
}

/**
 * What this principal is shown of what it asked for. A credential that is bound to an org sees that org alone;
 * `account` events name people, so they are for administrators.
 */
export function interestOf(
  principal: Principal,
  { orgId, kinds, lineage }: StreamQuery,
): Result<ReaderInterest, Fault> {
  const noReader = refuseWithout('read', principal);
  if (noReader !== undefined) return noReader;
  if (orgId !== undefined && !seesOrg(principal, orgId)) return fail({ kind: 'org_forbidden', orgId });
  const noAdmin = refuseWithout('admin', principal);
  if (kinds?.has('account') === true && noAdmin !== undefined) return noAdmin;
  return ok({
    orgId: orgId ?? principal.orgId,
    kinds: kinds ?? (noAdmin === undefined ? ALL_KINDS : KINDS_FOR_READERS),
    lineage,
  });
}

const isEventKind = (word: string): word is EventKind => (EVENT_KINDS as readonly string[]).includes(word);
const ALL_KINDS: ReadonlySet<EventKind> = new Set(EVENT_KINDS);
const KINDS_FOR_READERS: ReadonlySet<EventKind> = new Set(EVENT_KINDS.filter((kind) => kind !== 'account'));
