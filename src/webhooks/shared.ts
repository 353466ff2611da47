import { createHash } from 'node:crypto';
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
  type WebhookStatus,
  wants,
} from '../core/webhooks/webhook.ts';
import type { Barrier, Unconfirmed } from '../ports/cluster.ts';
import type { FailedHook, KnownHook, SharedWebhooks, TakenCall } from '../ports/shared-webhooks.ts';
import { type Clocks, HookCaller } from './caller.ts';
import { type Failure, reasonFor } from './delivery.ts';
import {
  type AskedWebhook,
  auditOf,
  bodyOf,
  disabledNotice,
  type EndMadeWebhooks,
  endMadeOf,
  isDisabled,
  MOST_WAITING,
  MOST_WEBHOOKS,
  type NewWebhook,
  newHook,
  notFound,
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
import { Outbox } from './outbox.ts';
import type { WebhookRow } from './queue.ts';

/** `states`: what this gateway had when it was alone, and what the database could not take yet. */
export type ClusterWebhooksDeps = WebhookDeps & {
  readonly store: SharedWebhooks;
  readonly barrier: Barrier;
  readonly clocks: Clocks;
};

type Answer<T> = Promise<Result<T, Fault> & Unconfirmed>;

/**
 * Webhooks that all gateways of a cluster share. Hooks and messages are in the database; every gateway knows what each
 * hook wants, and whichever is free makes its calls, one at a time.
 */
export class ClusterWebhooks implements Webhooks {
  readonly #deps: ClusterWebhooksDeps;
  readonly #outbox: Outbox;
  readonly #caller: HookCaller;
  readonly #caps = new ReportedCaps();
  readonly tally = { delivered: 0, failed: 0, dropped: 0 };
  #hooks: readonly KnownHook[] = [];
  #reading: Promise<Result<void, Fault>> = Promise.resolve(ok(undefined));
  waiting = 0;

  constructor(deps: ClusterWebhooksDeps) {
    this.#deps = deps;
    const { tally } = this;
    this.#caller = new HookCaller({
      ...deps,
      tally,
      isNeeded: () => this.#hooks.length > 0,
      orgOf: (hookId) => this.#orgOf(hookId),
      onFailed: (call, failure, hook) => this.#noteFailure(call, failure, hook),
    });
    this.#outbox = new Outbox({
      ...deps,
      onWritten: () => this.#caller.look(),
      onDropped: (count) => {
        tally.dropped += count;
      },
    });
  }

  /** Brings what this gateway had alone. Call it once it has joined, again after a fault. */
  async bringHooks(): Promise<Result<void, Fault>> {
    const { states, store, log } = this.#deps;
    const rows = [...states.load('webhooks')].filter(({ row }) => isHook(row));
    const hooks = rows.flatMap(({ row }) => (isHook(row) ? [row.hook] : []));
    if (hooks.length === 0) return ok(undefined);
    const brought = await store.adopt(hooks.sort((one, other) => one.createdAtMs - other.createdAtMs));
    if (!brought.ok) return brought;
    log.info('brought the webhooks of this gateway into the cluster', { webhooks: brought.value });
    // Else they would come back at the next start, when they were deleted meanwhile.
    await Promise.all(rows.map(({ id }) => states.remove('webhooks', id)));
    return ok(undefined);
  }

  /** Brings what it could not hand over before. Call it once, after its hooks. */
  async bringMessages(): Promise<void> {
    const rows = [...this.#deps.states.load('webhooks')];
    const messages = rows.flatMap(({ row }) => (isHook(row) ? [] : [row as WebhookRow & { kind: 'message' }]));
    for (const message of messages.sort((one, other) => one.number - other.number)) this.#outbox.restore(message);
    await this.#outbox.written();
  }

  open(): void {
    this.#caller.open();
  }

  /** Notices are handed over, and calls under way end. */
  async close(): Promise<void> {
    await this.#outbox.written();
    this.#outbox.close();
    await this.#caller.close();
  }

  get counts(): { readonly active: number; readonly disabled: number } {
    const disabled = this.#hooks.filter(({ disabledAtMs }) => disabledAtMs !== undefined).length;
    return { active: this.#hooks.length - disabled, disabled };
  }

  /** Takes over what other gateways have changed. Resolves when a reading that began after the call has ended. */
  refresh(): Promise<Result<void, Fault>> {
    const read = async (): Promise<Result<void, Fault>> => {
      const known = await this.#deps.store.known();
      if (!known.ok) return known;
      this.#hooks = known.value.hooks;
      this.waiting = known.value.waiting;
      return ok(undefined);
    };
    this.#reading = this.#reading.then(read, read);
    return this.#reading;
  }

  reportEffect(effect: ReportedEffect): Report | undefined {
    if (this.#hooks.length === 0) return undefined;
    const notice = noticeOf(effect, this.#deps.resetsAtMs);
    return notice && this.#report(notice);
  }

  reportExceeded(draft: AuditDraft): Report | undefined {
    if (this.#hooks.length === 0) return undefined;
    const notice = exceededNotice(draft);
    return notice && this.#report(notice);
  }

  reportOwn(type: 'policy.reload_failed' | 'audit.unwritable', data: Notice['data']): void {
    this.#report({ type, org: { id: null }, data })?.settle(true);
  }

  async create(principal: Principal, asked: NewWebhook): Answer<Webhook> {
    const { audit, log, store } = this.#deps;
    const made = newHook(principal, asked, this.#deps);
    if (!made.ok) return made;
    const hook = made.value;
    const created = await store.create(hook, MOST_WEBHOOKS);
    if (!created.ok) return created;
    if (!created.value) return tooMany(hook.orgId);
    const recorded = await audit.record(auditOf('WebhookCreated', hook, principal.subject));
    if (!recorded.ok) {
      const removed = await store.remove(hook.id);
      if (!removed.ok) log.error('a webhook that could not be recorded is still there; delete it', { id: hook.id });
      return recorded;
    }
    return { ...made, unconfirmed: await this.#everywhere() };
  }

  async list(principal: Principal, asked: WebhookListing): Promise<Result<Page<WebhookStatus>, Fault>> {
    const all = await this.#deps.store.list();
    return all.ok ? pageOf(all.value, principal, asked) : all;
  }

  async get({ principal, id }: AskedWebhook): Promise<Result<WebhookStatus, Fault>> {
    const all = await this.#deps.store.list();
    if (!all.ok) return all;
    const found = all.value.find(({ hook }) => hook.id === id);
    const visible = visibleTo(principal, id, found?.hook);
    return visible.ok ? ok(found!) : visible;
  }

  async remove({ principal, id }: AskedWebhook): Answer<void> {
    const found = await this.get({ principal, id });
    if (!found.ok) return found;
    const removed = await this.#remove(found.value.hook, principal.subject);
    return removed.ok ? { ...removed, unconfirmed: await this.#everywhere() } : removed;
  }

  async takeOver({ principal, id }: AskedWebhook): Promise<Result<WebhookStatus, Fault>> {
    const { audit, store } = this.#deps;
    const found = await this.get({ principal, id });
    if (!found.ok) return found;
    const { hook } = found.value;
    const { subject } = principal;
    if (hook.createdBy === subject) return found;
    const recorded = await audit.record(takenOver(hook, subject));
    if (!recorded.ok) return recorded;
    const given = await store.give(id, subject);
    if (!given.ok) return given;
    return given.value ? ok({ ...found.value, hook: { ...hook, createdBy: subject } }) : notFound(id);
  }

  async endMade(asked: EndMadeWebhooks): Promise<Result<MadeWebhooks, Fault>> {
    const all = await this.#deps.store.list();
    if (!all.ok) return all;
    const hooks = all.value.map(({ hook }) => hook);
    const ended = await endMadeOf(hooks, asked, (hook, actor) => this.#remove(hook, actor));
    if (ended.ok && ended.value.deleted.length > 0) await this.refresh();
    return ended;
  }

  async #remove(hook: Parameters<typeof auditOf>[1], actor: string): Promise<Result<void, Fault>> {
    const recorded = await this.#deps.audit.record(auditOf('WebhookDeleted', hook, actor));
    return recorded.ok ? this.#deps.store.remove(hook.id) : recorded;
  }

  async test({ principal, id }: AskedWebhook): Promise<Result<{ readonly messageId: string }, Fault>> {
    const found = await this.get({ principal, id });
    if (!found.ok) return found;
    const { disabledAtMs, orgId } = found.value.hook;
    if (disabledAtMs !== undefined) return isDisabled(id);
    const { newId, nowMs, store } = this.#deps;
    const messageId = `msg_${newId()}`;
    const body = bodyOf(TEST_EVENT, { webhook_id: id, org_id: orgId }, nowMs());
    const message = { id: messageId, hookId: id, body, isOnce: false, isHeld: false };
    const none = { letGo: [], withdrawn: [], dropped: new Map<string, number>() };
    const written = await store.write({ added: [message], ...none }, MOST_WAITING);
    if (!written.ok) return written;
    if (written.value > 0) {
      this.tally.dropped += written.value;
      return TOO_MANY_WAIT;
    }
    this.#caller.look();
    return ok({ messageId });
  }

  /** Every gateway reports to it from now on, or does not any more. */
  async #everywhere(): Promise<readonly string[]> {
    const [names] = await Promise.all([this.#deps.barrier.pass('webhooks'), this.refresh()]);
    return names;
  }

  #report(notice: Notice): Report | undefined {
    const hooks = this.#hooks.filter((hook) => wants(hook, notice));
    const cap = notice.type === 'budget.exceeded' ? capOf(notice.data) : undefined;
    if (hooks.length === 0 || !this.#caps.isNew(cap)) return undefined;
    this.#caps.add(cap);
    const body = bodyOf(notice.type, notice.data, this.#deps.nowMs());
    const held = hooks.flatMap(({ id: hookId }) => {
      const id = cap === undefined ? `msg_${this.#deps.newId()}` : onceIdOf(hookId, cap);
      const saved = this.#outbox.hold({ id, hookId, body, isOnce: cap !== undefined });
      return saved === undefined ? [] : [{ id, saved }];
    });
    return {
      saved: Promise.all(held.map(({ saved }) => saved)),
      settle: (isRecorded) => {
        for (const { id } of held) isRecorded ? this.#outbox.letGo(id) : this.#outbox.withdraw(id);
        if (!isRecorded) this.#caps.forget(cap);
      },
    };
  }

  /** An unknown webhook is taken for an org's. */
  #orgOf(hookId: string): string | null {
    const known = this.#hooks.find(({ id }) => id === hookId);
    return known === undefined ? '' : known.orgId;
  }

  #noteFailure({ hookId, url }: TakenCall, failure: Failure, failed: FailedHook): void {
    const { failures, failingSinceMs, disabledAtMs, lost } = failed;
    if (failures === 1) warnOfFailure({ id: hookId, url }, failure.reason, this.#deps);
    const known = this.#hooks.find(({ id }) => id === hookId);
    if (disabledAtMs === undefined || known === undefined) return;
    this.tally.dropped += lost;
    this.#hooks = this.#hooks.map((hook) => (hook === known ? { ...hook, disabledAtMs } : hook));
    this.#everywhere().catch((error: unknown) => this.#deps.onError(error, 'disabling a webhook'));
    const lastError = reasonFor(known.orgId, failure);
    const notice = disabledNotice({ ...known, url, failingSinceMs, lastError }, lost, this.#deps);
    this.#report(notice)?.settle(true);
  }
}

const isHook = (row: unknown): row is WebhookRow & { readonly kind: 'hook' } => (row as WebhookRow).kind === 'hook';

/** The same at every gateway that notices the same, so that it is sent once. */
function onceIdOf(hookId: string, cap: string): string {
  const digits = createHash('sha256').update(`${hookId} ${cap}`).digest('hex');
  return `msg_${digits.slice(0, 32)}`;
}
