/** Webhooks as admins handle them, and what happens as they report it (docs/spec.md, Webhooks). */
import { orgInReach, refuseWithout } from '../core/access.ts';
import { type AuditDraft, lineageOfOrg } from '../core/audit/audit.ts';
import { BAD_CURSOR, firstPage, type Page, type PageRequest } from '../core/base/page.ts';
import { fail, ok, type Result } from '../core/base/result.ts';
import { rfc3339 } from '../core/base/time.ts';
import type { Period } from '../core/budget/config.ts';
import { type Fault, invalid } from '../core/fault.ts';
import { type Principal, seesOrg } from '../core/identity/roles.ts';
import { capOf, exceededNotice, noticeOf, type ReportedEffect } from '../core/webhooks/notice.ts';
import { type Notice, TEST_EVENT, type Webhook, type WebhookEvent, wants } from '../core/webhooks/webhook.ts';
import type { AuditLog } from '../ports/ports.ts';
import { urlTrouble } from './address.ts';
import { HookLine, type LineDeps, type Message, type WebhookRow } from './line.ts';

export type NewWebhook = {
  readonly url: string;
  readonly events: readonly WebhookEvent[];
  /** The org to bind it to. Undefined: the one that the creator is bound to, if any. */
  readonly orgId: string | undefined;
};
/** `waiting`: messages that have not arrived yet. */
export type WebhookStatus = { readonly hook: Omit<Webhook, 'secret'>; readonly waiting: number };
type Asked = { readonly principal: Principal; readonly id: string };

/** A report that is on its way to the store. It is sent if what it reports is recorded, and dropped if not. */
export type Report = { readonly saved: Promise<unknown>; settle(isRecorded: boolean): void };

export type WebhookKeeperDeps = Omit<LineDeps, 'onDisabled' | 'onFailed' | 'tally'> & {
  readonly audit: AuditLog;
  readonly isPrivateAllowed: boolean;
  readonly resetsAtMs: (period: Period) => number;
  readonly newId: () => string;
  readonly newSecret: () => string;
  readonly log: { warn(message: string, fields?: object): void; error(message: string, fields?: object): void };
};

const MAX_WEBHOOKS = 100;
const MAX_ORG_WEBHOOKS = 10;
/** Caps whose excess was reported. With more, the oldest is reported once more. */
const MAX_KNOWN_CAPS = 10_000;

export class WebhookKeeper {
  readonly #deps: WebhookKeeperDeps;
  readonly #lines = new Map<string, HookLine>();
  readonly #knownCaps = new Set<string>();
  #making = 0;
  #lastNumber = 0;
  /** Calls since the start, and messages that no call was made for, for the metrics. */
  readonly tally = { delivered: 0, failed: 0, dropped: 0 };

  /** Takes up the webhooks of earlier runs, with what still waits. */
  constructor(deps: WebhookKeeperDeps) {
    this.#deps = deps;
    const rows = [...deps.states.load('webhooks')].map(({ row }) => row as WebhookRow);
    const hooks = rows.flatMap((row) => (row.kind === 'hook' ? [row.hook] : []));
    for (const hook of hooks.sort((one, other) => one.createdAtMs - other.createdAtMs))
      this.#lines.set(hook.id, this.#lineOf(hook));
    const messages = rows.flatMap((row) => (row.kind === 'message' ? [row] : []));
    for (const { hookId, id, number, body } of messages.sort((one, other) => one.number - other.number)) {
      this.#lines.get(hookId)?.restore({ id, number, body });
      this.#lastNumber = number;
    }
  }

  /** Makes calls from now on. */
  open(): void {
    for (const line of this.#lines.values()) line.open();
  }

  close(): void {
    for (const line of this.#lines.values()) line.close();
  }

  get waiting(): number {
    return [...this.#lines.values()].reduce((sum, { waiting }) => sum + waiting, 0);
  }

  get counts(): { readonly active: number; readonly disabled: number } {
    const disabled = [...this.#lines.values()].filter(({ hook }) => hook.disabledAtMs !== undefined).length;
    return { active: this.#lines.size - disabled, disabled };
  }

  /** Reports a decision of the governor; undefined where no hook wants it. */
  reportEffect(effect: ReportedEffect): Report | undefined {
    if (this.#lines.size === 0) return undefined;
    const notice = noticeOf(effect, this.#deps.resetsAtMs);
    return notice && this.#report(notice);
  }

  /** Reports a check that a cap denied, once in each of its periods. */
  reportExceeded(draft: AuditDraft): Report | undefined {
    if (this.#lines.size === 0) return undefined;
    const notice = exceededNotice(draft);
    return notice && this.#report(notice);
  }

  /** Reports what concerns the gateway as a whole. */
  reportOwn(type: 'policy.reload_failed' | 'audit.unwritable', data: Notice['data']): void {
    this.#report({ type, org: { id: null }, data })?.settle(true);
  }

  async create(principal: Principal, { url, events, orgId: asked }: NewWebhook): Promise<Result<Webhook, Fault>> {
    const refused = refuseWithout('admin', principal);
    if (refused !== undefined) return refused;
    const org = orgInReach(principal, asked);
    if (!org.ok) return org;
    const orgId = org.value ?? null;
    const trouble = urlTrouble(url, this.#deps.isPrivateAllowed);
    if (trouble !== undefined) return invalid('url', trouble);
    const hook: Webhook = {
      id: this.#deps.newId(),
      url,
      events: [...new Set(events)],
      orgId,
      secret: this.#deps.newSecret(),
      createdBy: principal.subject,
      createdAtMs: this.#deps.nowMs(),
      failingSinceMs: undefined,
      failures: 0,
      lastError: undefined,
      disabledAtMs: undefined,
      dropped: 0,
    };
    const full = this.#fullFor(orgId);
    if (full !== undefined) return full;
    this.#making += 1;
    try {
      return await this.#add(hook);
    } finally {
      this.#making -= 1;
    }
  }

  list(
    principal: Principal,
    { orgId, perPage, cursor }: PageRequest & { readonly orgId: string | undefined },
  ): Result<Page<WebhookStatus>, Fault> {
    const org = orgInReach(principal, orgId);
    if (!org.ok) return org;
    const visible = [...this.#lines.values()]
      .filter(({ hook }) => org.value === undefined || hook.orgId === org.value)
      .reverse();
    const start = cursor === undefined ? 0 : visible.findIndex(({ hook }) => hook.id === cursor) + 1;
    if (cursor !== undefined && start === 0) return BAD_CURSOR;
    const page = firstPage(visible.slice(start), perPage, ({ hook }) => hook.id);
    return ok({ items: page.items.map(statusOf), next: page.next });
  }

  get({ principal, id }: Asked): Result<WebhookStatus, Fault> {
    const line = this.#visible(principal, id);
    return line.ok ? ok(statusOf(line.value)) : line;
  }

  async remove({ principal, id }: Asked): Promise<Result<void, Fault>> {
    const line = this.#visible(principal, id);
    if (!line.ok) return line;
    const recorded = await this.#deps.audit.record(auditOf('WebhookDeleted', line.value.hook, principal.subject));
    if (!recorded.ok) return recorded;
    await line.value.remove();
    this.#lines.delete(id);
    return ok(undefined);
  }

  /** Sends a message that reports nothing. Resolves with its id once it is in the store. */
  async test({ principal, id }: Asked): Promise<Result<{ readonly messageId: string }, Fault>> {
    const line = this.#visible(principal, id);
    if (!line.ok) return line;
    const { hook } = line.value;
    if (hook.disabledAtMs !== undefined)
      return fail({ kind: 'conflict', detail: `webhook ${id} is disabled; delete it and create it again` });
    const message = this.#messageOf(TEST_EVENT, { webhook_id: id, org_id: hook.orgId });
    const saved = line.value.hold(message);
    if (saved === undefined)
      return fail({
        kind: 'overloaded',
        retryAfterSecs: 60,
        what: 'the number of messages that wait for this webhook',
      });
    await saved;
    line.value.letGo(message.id);
    return ok({ messageId: message.id });
  }

  async #add(hook: Webhook): Promise<Result<Webhook, Fault>> {
    const recorded = await this.#deps.audit.record(auditOf('WebhookCreated', hook, hook.createdBy));
    if (!recorded.ok) return recorded;
    const line = this.#lineOf(hook);
    await line.saveHook();
    this.#lines.set(hook.id, line);
    line.open();
    return ok(hook);
  }

  #fullFor(orgId: string | null): Result<never, Fault> | undefined {
    const ofOrg = [...this.#lines.values()].filter(({ hook }) => hook.orgId === orgId).length;
    if (this.#lines.size + this.#making < MAX_WEBHOOKS && (orgId === null || ofOrg + this.#making < MAX_ORG_WEBHOOKS))
      return undefined;
    const most = orgId === null ? `${MAX_WEBHOOKS} webhooks` : `${MAX_ORG_WEBHOOKS} webhooks of this org`;
    return fail({ kind: 'conflict', detail: `there are ${most} or as many in all; delete those no longer needed` });
  }

  #visible(principal: Principal, id: string): Result<HookLine, Fault> {
    const refused = refuseWithout('admin', principal);
    if (refused !== undefined) return refused;
    const line = this.#lines.get(id);
    return line === undefined || !seesOrg(principal, line.hook.orgId)
      ? fail({ kind: 'not_found', what: `webhook ${id}` })
      : ok(line);
  }

  #report(notice: Notice): Report | undefined {
    const lines = [...this.#lines.values()].filter(({ hook }) => wants(hook, notice));
    const cap = notice.type === 'budget.exceeded' ? capOf(notice.data) : undefined;
    if (lines.length === 0 || (cap !== undefined && this.#knownCaps.has(cap))) return undefined;
    if (cap !== undefined) this.#remember(cap);
    const held = lines.flatMap((line) => {
      const message = this.#messageOf(notice.type, notice.data);
      const saved = line.hold(message);
      return saved === undefined ? [] : [{ line, id: message.id, saved }];
    });
    return {
      saved: Promise.all(held.map(({ saved }) => saved)),
      settle: (isRecorded) => {
        for (const { line, id } of held) isRecorded ? line.letGo(id) : line.withdraw(id);
        if (!isRecorded && cap !== undefined) this.#knownCaps.delete(cap);
      },
    };
  }

  #remember(cap: string): void {
    const [oldest] = this.#knownCaps;
    if (oldest !== undefined && this.#knownCaps.size >= MAX_KNOWN_CAPS) this.#knownCaps.delete(oldest);
    this.#knownCaps.add(cap);
  }

  #messageOf(type: WebhookEvent | typeof TEST_EVENT, data: Notice['data']): Message {
    this.#lastNumber += 1;
    const body = JSON.stringify({ type, timestamp: rfc3339(this.#deps.nowMs()), data });
    return { id: `msg_${this.#deps.newId()}`, number: this.#lastNumber, body };
  }

  #lineOf(hook: Webhook): HookLine {
    return new HookLine(hook, {
      ...this.#deps,
      tally: this.tally,
      onFailed: ({ id, url }, reason) =>
        this.#deps.log.warn('a webhook cannot be called; it is tried again', { id, host: new URL(url).host, reason }),
      onDisabled: (disabled, lost) => this.#notifyDisabled(disabled, lost),
    });
  }

  #notifyDisabled({ id, url, orgId, events, failingSinceMs, lastError }: Webhook, lost: number): void {
    const { log, nowMs } = this.#deps;
    log.error('a webhook is disabled, as its calls have failed for a day', { id, host: new URL(url).host, lost });
    const data = {
      id,
      host: new URL(url).host,
      org_id: orgId,
      events,
      failing_since: rfc3339(failingSinceMs ?? nowMs()),
      last_error: lastError ?? null,
      dropped: lost,
    };
    this.#report({ type: 'webhook.disabled', org: { id: orgId }, data })?.settle(true);
  }
}

const statusOf = ({ hook: { secret: _, ...hook }, waiting }: HookLine): WebhookStatus => ({ hook, waiting });

/** Without the path of the URL: many services put a secret into it. */
function auditOf(eventType: 'WebhookCreated' | 'WebhookDeleted', hook: Webhook, actor: string): AuditDraft {
  const { id, url, events, orgId } = hook;
  return {
    eventType,
    lineage: lineageOfOrg(orgId),
    actor,
    payload: { webhook_id: id, host: new URL(url).host, events },
  };
}
