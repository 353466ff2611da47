/** The rules of webhooks: who may have them, how many, and what is said of them (docs/spec.md, Webhooks). */

import { type AuditDraft, lineageOfOrg } from '../core/audit/audit.ts';
import { BAD_CURSOR, firstPage, type Page, type PageRequest } from '../core/base/page.ts';
import { fail, ok, type Result } from '../core/base/result.ts';
import { rfc3339 } from '../core/base/time.ts';
import type { Period } from '../core/budget/config.ts';
import { type Fault, invalid } from '../core/fault.ts';
import { orgInReach, refuseWithout } from '../core/identity/access.ts';
import { type Principal, seesOrg } from '../core/identity/roles.ts';
import type { Notice, TEST_EVENT, Webhook, WebhookEvent, WebhookStatus } from '../core/webhooks/webhook.ts';
import type { AuditLog, StateStore } from '../ports/ports.ts';
import { urlTrouble } from './address.ts';
import type { Delivery } from './delivery.ts';
import type { Call } from './sender.ts';

export type NewWebhook = {
  readonly url: string;
  readonly events: readonly WebhookEvent[];
  /** The org to bind it to. Undefined: the one that the creator is bound to, if any. */
  readonly orgId: string | undefined;
};
export type AskedWebhook = { readonly principal: Principal; readonly id: string };
export type WebhookListing = PageRequest & {
  readonly orgId: string | undefined;
  /** Only those that one of these subjects made. */
  readonly makers?: readonly string[] | undefined;
};
export type EndMadeWebhooks = {
  /** The subjects that have ended. */
  readonly makers: readonly string[];
  readonly actor: string;
  /** False keeps them all. */
  readonly cascade: boolean;
};

/** A report that is on its way to the store. It is sent if what it reports is recorded, and dropped if not. */
export type Report = { readonly saved: Promise<unknown>; settle(isRecorded: boolean): void };

/** Calls since the start, and messages that no call was made for, for the metrics. */
export type WebhookTally = Record<'delivered' | 'failed' | 'dropped', number>;

/** Two clocks: one that nobody sets, and one that goes on while the machine is suspended. */
export type Clocks = { readonly steadyMs: () => number; readonly wallMs: () => number };

export type WebhookDeps = {
  readonly states: StateStore;
  readonly audit: AuditLog;
  readonly send: (call: Call) => Promise<Delivery>;
  readonly nowMs: () => number;
  readonly clocks: Clocks;
  /** Calls back after that time. Returns what stops it. */
  readonly after: (ms: number, call: () => void) => () => void;
  readonly isPrivateAllowed: boolean;
  readonly resetsAtMs: (period: Period) => number;
  readonly newId: () => string;
  readonly newSecret: () => string;
  readonly onError: (error: unknown, doing: string) => void;
  readonly log: {
    info(message: string, fields?: object): void;
    warn(message: string, fields?: object): void;
    error(message: string, fields?: object): void;
  };
};

export const MOST_WEBHOOKS = { inAll: 100, ofOrg: 10 } as const;
/** Limits messages waiting for one webhook; further ones are dropped and counted. */
export const MOST_WAITING = { number: 1_000, bytes: 2 * 1024 * 1024 } as const;

export const TOO_MANY_WAIT = fail({
  kind: 'overloaded',
  retryAfterSecs: 60,
  what: 'the number of messages that wait for this webhook',
} as const);

export const isDisabled = (id: string): Result<never, Fault> =>
  fail({ kind: 'conflict', detail: `webhook ${id} is disabled; delete it and create it again` });

export function isFull(all: readonly { readonly hook: Pick<Webhook, 'orgId'> }[], orgId: string | null): boolean {
  const ofOrg = all.filter(({ hook }) => hook.orgId === orgId).length;
  return all.length >= MOST_WEBHOOKS.inAll || (orgId !== null && ofOrg >= MOST_WEBHOOKS.ofOrg);
}

export function tooMany(orgId: string | null): Result<never, Fault> {
  const { inAll, ofOrg } = MOST_WEBHOOKS;
  const most = orgId === null ? `${inAll} webhooks` : `${ofOrg} webhooks of this org`;
  return fail({ kind: 'conflict', detail: `there are ${most} or as many in all; delete those no longer needed` });
}

/** Makes the requested webhook, if it is allowed. */
export function newHook(
  principal: Principal,
  { url, events, orgId: asked }: NewWebhook,
  { isPrivateAllowed, newId, newSecret, nowMs }: WebhookDeps,
): Result<Webhook, Fault> {
  const refused = refuseWithout('admin', principal);
  if (refused !== undefined) return refused;
  const org = orgInReach(principal, asked);
  if (!org.ok) return org;
  const trouble = urlTrouble(url, isPrivateAllowed);
  if (trouble !== undefined) return invalid('url', trouble);
  return ok({
    id: newId(),
    url,
    events: [...new Set(events)],
    orgId: org.value ?? null,
    secret: newSecret(),
    createdBy: principal.subject,
    createdAtMs: nowMs(),
    failingSinceMs: undefined,
    failures: 0,
    lastError: undefined,
    disabledAtMs: undefined,
    dropped: 0,
  });
}

/** The page of what is given newest first. */
export function pageOf(
  all: readonly WebhookStatus[],
  principal: Principal,
  { orgId, makers, perPage, cursor }: WebhookListing,
): Result<Page<WebhookStatus>, Fault> {
  const org = orgInReach(principal, orgId);
  if (!org.ok) return org;
  const visible = all.filter(
    ({ hook }) => (org.value === undefined || hook.orgId === org.value) && (makers?.includes(hook.createdBy) ?? true),
  );
  const start = cursor === undefined ? 0 : visible.findIndex(({ hook }) => hook.id === cursor) + 1;
  if (cursor !== undefined && start === 0) return BAD_CURSOR;
  return ok(firstPage(visible.slice(start), perPage, ({ hook }) => hook.id));
}

export function visibleTo(
  principal: Principal,
  id: string,
  hook: { readonly orgId: string | null } | undefined,
): Result<void, Fault> {
  const refused = refuseWithout('admin', principal);
  if (refused !== undefined) return refused;
  return hook === undefined || !seesOrg(principal, hook.orgId) ? notFound(id) : ok(undefined);
}

export const notFound = (id: string): Result<never, Fault> => fail({ kind: 'not_found', what: `webhook ${id}` });

export const bodyOf = (type: WebhookEvent | typeof TEST_EVENT, data: Notice['data'], nowMs: number): string =>
  JSON.stringify({ type, timestamp: rfc3339(nowMs), data });

/** Without the path of the URL: many services put a secret into it. */
export function auditOf(
  eventType: 'WebhookCreated' | 'WebhookDeleted' | 'WebhookTakenOver',
  { id, url, events, orgId }: Pick<Webhook, 'id' | 'url' | 'events' | 'orgId'>,
  actor: string,
  details: Readonly<Record<string, unknown>> = {},
): AuditDraft {
  return {
    eventType,
    lineage: lineageOfOrg(orgId),
    actor,
    payload: { webhook_id: id, host: new URL(url).host, events, ...details },
  };
}

export const takenOver = (
  hook: Pick<Webhook, 'id' | 'url' | 'events' | 'orgId' | 'createdBy'>,
  actor: string,
): AuditDraft => auditOf('WebhookTakenOver', hook, actor, { from: hook.createdBy });

export const warnOfFailure = (
  { id, url }: Pick<Webhook, 'id' | 'url'>,
  reason: string,
  { log }: Pick<WebhookDeps, 'log'>,
): void => log.warn('a webhook cannot be called; it is tried again', { id, host: new URL(url).host, reason });

/** Logs that a hook was given up, and says so to the others. */
export function disabledNotice(
  hook: Pick<Webhook, 'id' | 'url' | 'orgId' | 'events' | 'failingSinceMs' | 'lastError'>,
  lost: number,
  { log, nowMs }: Pick<WebhookDeps, 'log' | 'nowMs'>,
): Notice {
  const { id, url, orgId, events, failingSinceMs, lastError } = hook;
  const { host } = new URL(url);
  log.error('a webhook is disabled, as its calls have failed for a day', { id, host, lost });
  const data = {
    id,
    host,
    org_id: orgId,
    events,
    failing_since: rfc3339(failingSinceMs ?? nowMs()),
    last_error: lastError ?? null,
    dropped: lost,
  };
  return { type: 'webhook.disabled', org: { id: orgId }, data };
}

/** Caps whose excess was reported. With more, the oldest is reported once more. */
const MAX_KNOWN_CAPS = 10_000;

export class ReportedCaps {
  readonly #known = new Set<string>();

  /** A notice that is about no cap is always new. */
  isNew(cap: string | undefined): boolean {
    return cap === undefined || !this.#known.has(cap);
  }

  add(cap: string | undefined): void {
    if (cap === undefined) return;
    const [oldest] = this.#known;
    if (oldest !== undefined && this.#known.size >= MAX_KNOWN_CAPS) this.#known.delete(oldest);
    this.#known.add(cap);
  }

  forget(cap: string | undefined): void {
    if (cap !== undefined) this.#known.delete(cap);
  }
}
