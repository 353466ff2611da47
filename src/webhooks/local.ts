/** Webhooks as admins handle them, and what happens as they report it (docs/spec.md, Webhooks). */
import type { AuditDraft } from '../core/audit/audit.ts';
import type { Page } from '../core/base/page.ts';
import { ok, type Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import type { Principal } from '../core/identity/roles.ts';
import { capOf, exceededNotice, noticeOf, type ReportedEffect } from '../core/webhooks/notice.ts';
import {
  type MadeWebhooks,
  type Notice,
  TEST_EVENT,
  type Webhook,
  type WebhookEvent,
  type WebhookStatus,
  wants,
} from '../core/webhooks/webhook.ts';
import {
  type AskedWebhook,
  auditOf,
  bodyOf,
  disabledNotice,
  type EndMadeWebhooks,
  endMadeOf,
  isDisabled,
  MOST_WEBHOOKS,
  type NewWebhook,
  newHook,
  pageOf,
  type Report,
  ReportedCaps,
  TOO_MANY_WAIT,
  takenOver,
  tooMany,
  visibleTo,
  type WebhookDeps,
  type WebhookListing,
  type Webhooks,
  warnOfFailure,
} from './hooks.ts';
import { type Message, WebhookQueue, type WebhookRow } from './queue.ts';

export class LocalWebhooks implements Webhooks {
  readonly #deps: WebhookDeps;
  readonly #queues = new Map<string, WebhookQueue>();
  readonly #caps = new ReportedCaps();
  #making = 0;
  #lastNumber = 0;
  /** Calls since the start, and messages that no call was made for, for the metrics. */
  readonly tally = { delivered: 0, failed: 0, dropped: 0 };

  /** Takes up the webhooks of earlier runs, with what still waits. */
  constructor(deps: WebhookDeps) {
    this.#deps = deps;
    const rows = [...deps.states.load('webhooks')].map(({ row }) => row as WebhookRow);
    const hooks = rows.flatMap((row) => (row.kind === 'hook' ? [row.hook] : []));
    for (const hook of hooks.sort((one, other) => one.createdAtMs - other.createdAtMs))
      this.#queues.set(hook.id, this.#queueOf(hook));
    const messages = rows.flatMap((row) => (row.kind === 'message' ? [row] : []));
    for (const { hookId, id, number, body } of messages.sort((one, other) => one.number - other.number)) {
      this.#queues.get(hookId)?.restore({ id, number, body });
      this.#lastNumber = number;
    }
  }

  /** Makes calls from now on. */
  open(): void {
    for (const line of this.#queues.values()) line.open();
  }

  close(): void {
    for (const line of this.#queues.values()) line.close();
  }

  get waiting(): number {
    return [...this.#queues.values()].reduce((sum, { waiting }) => sum + waiting, 0);
  }

  get counts(): { readonly active: number; readonly disabled: number } {
    const disabled = [...this.#queues.values()].filter(({ hook }) => hook.disabledAtMs !== undefined).length;
    return { active: this.#queues.size - disabled, disabled };
  }

  /** Reports a decision of the governor; undefined where no hook wants it. */
  reportEffect(effect: ReportedEffect): Report | undefined {
    if (this.#queues.size === 0) return undefined;
    const notice = noticeOf(effect, this.#deps.resetsAtMs);
    return notice && this.#report(notice);
  }

  /** Reports a check that a cap denied, once in each of its periods. */
  reportExceeded(draft: AuditDraft): Report | undefined {
    if (this.#queues.size === 0) return undefined;
    const notice = exceededNotice(draft);
    return notice && this.#report(notice);
  }

  /** Reports what concerns the gateway as a whole. */
  reportOwn(type: 'policy.reload_failed' | 'audit.unwritable', data: Notice['data']): void {
    this.#report({ type, org: { id: null }, data })?.settle(true);
  }

  async create(principal: Principal, asked: NewWebhook): Promise<Result<Webhook, Fault>> {
    const made = newHook(principal, asked, this.#deps);
    if (!made.ok) return made;
    const hook = made.value;
    const full = this.#fullFor(hook.orgId);
    if (full !== undefined) return full;
    this.#making += 1;
    try {
      return await this.#add(hook);
    } finally {
      this.#making -= 1;
    }
  }

  list(principal: Principal, asked: WebhookListing): Result<Page<WebhookStatus>, Fault> {
    return pageOf([...this.#queues.values()].reverse().map(statusOf), principal, asked);
  }

  get({ principal, id }: AskedWebhook): Result<WebhookStatus, Fault> {
    const line = this.#visible(principal, id);
    return line.ok ? ok(statusOf(line.value)) : line;
  }

  async remove({ principal, id }: AskedWebhook): Promise<Result<void, Fault>> {
    const line = this.#visible(principal, id);
    return line.ok ? this.#remove(line.value.hook, principal.subject) : line;
  }

  async takeOver({ principal, id }: AskedWebhook): Promise<Result<WebhookStatus, Fault>> {
    const line = this.#visible(principal, id);
    if (!line.ok) return line;
    const { hook } = line.value;
    const { subject } = principal;
    if (hook.createdBy === subject) return ok(statusOf(line.value));
    const recorded = await this.#deps.audit.record(takenOver(hook, subject));
    if (!recorded.ok) return recorded;
    await line.value.give(subject);
    return ok(statusOf(line.value));
  }

  endMade(asked: EndMadeWebhooks): Promise<Result<MadeWebhooks, Fault>> {
    const all = [...this.#queues.values()].map(({ hook }) => hook);
    return endMadeOf(all, asked, (hook, actor) => this.#remove(hook, actor));
  }

  async #remove(hook: Parameters<typeof auditOf>[1], actor: string): Promise<Result<void, Fault>> {
    const recorded = await this.#deps.audit.record(auditOf('WebhookDeleted', hook, actor));
    if (!recorded.ok) return recorded;
    await this.#queues.get(hook.id)?.remove();
    this.#queues.delete(hook.id);
    return ok(undefined);
  }

  /** Sends a message that reports nothing. Resolves with its id once it is in the store. */
  async test({ principal, id }: AskedWebhook): Promise<Result<{ readonly messageId: string }, Fault>> {
    const line = this.#visible(principal, id);
    if (!line.ok) return line;
    const { hook } = line.value;
    if (hook.disabledAtMs !== undefined) return isDisabled(id);
    const message = this.#messageOf(TEST_EVENT, { webhook_id: id, org_id: hook.orgId });
    const saved = line.value.hold(message);
    if (saved === undefined) return TOO_MANY_WAIT;
    await saved;
    line.value.letGo(message.id);
    return ok({ messageId: message.id });
  }

  async #add(hook: Webhook): Promise<Result<Webhook, Fault>> {
    const recorded = await this.#deps.audit.record(auditOf('WebhookCreated', hook, hook.createdBy));
    if (!recorded.ok) return recorded;
    const line = this.#queueOf(hook);
    await line.saveHook();
    this.#queues.set(hook.id, line);
    line.open();
    return ok(hook);
  }

  #fullFor(orgId: string | null): Result<never, Fault> | undefined {
    const ofOrg = [...this.#queues.values()].filter(({ hook }) => hook.orgId === orgId).length;
    if (
      this.#queues.size + this.#making < MOST_WEBHOOKS.inAll &&
      (orgId === null || ofOrg + this.#making < MOST_WEBHOOKS.ofOrg)
    )
      return undefined;
    return tooMany(orgId);
  }

  #visible(principal: Principal, id: string): Result<WebhookQueue, Fault> {
    const line = this.#queues.get(id);
    const visible = visibleTo(principal, id, line?.hook);
    return visible.ok ? ok(line!) : visible;
  }

  #report(notice: Notice): Report | undefined {
    const lines = [...this.#queues.values()].filter(({ hook }) => wants(hook, notice));
    const cap = notice.type === 'budget.exceeded' ? capOf(notice.data) : undefined;
    if (lines.length === 0 || !this.#caps.isNew(cap)) return undefined;
    this.#caps.add(cap);
    const held = lines.flatMap((line) => {
      const message = this.#messageOf(notice.type, notice.data);
      const saved = line.hold(message);
      return saved === undefined ? [] : [{ line, id: message.id, saved }];
    });
    return {
      saved: Promise.all(held.map(({ saved }) => saved)),
      settle: (isRecorded) => {
        for (const { line, id } of held) isRecorded ? line.letGo(id) : line.withdraw(id);
        if (!isRecorded) this.#caps.forget(cap);
      },
    };
  }

  #messageOf(type: WebhookEvent | typeof TEST_EVENT, data: Notice['data']): Message {
    this.#lastNumber += 1;
    const body = bodyOf(type, data, this.#deps.nowMs());
    return { id: `msg_${this.#deps.newId()}`, number: this.#lastNumber, body };
  }

  #queueOf(hook: Webhook): WebhookQueue {
    return new WebhookQueue(hook, {
      ...this.#deps,
      tally: this.tally,
      onFailed: (failed, reason) => warnOfFailure(failed, reason, this.#deps),
      onDisabled: (disabled, lost) => this.#report(disabledNotice(disabled, lost, this.#deps))?.settle(true),
    });
  }
}

const statusOf = ({ hook: { secret: _, ...hook }, waiting }: WebhookQueue): WebhookStatus => ({ hook, waiting });
