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
  type WebhookStatus,
  wants,
} from '../core/webhooks/webhook.ts';
import type { Barrier, Unconfirmed } from '../ports/cluster.ts';
import type { FailedHook, KnownHooks, TakenCall, WebhookStore } from '../ports/webhook-store.ts';
import { HookCaller } from './caller.ts';
import { type Failure, reasonFor } from './delivery.ts';
import {
  type AskedWebhook,
  auditOf,
  bodyOf,
  disabledNotice,
  type EndMadeWebhooks,
  isDisabled,
  isFull,
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
  type WebhookTally,
  warnOfFailure,
} from './hooks.ts';
import type { Messages } from './messages.ts';

export type WebhooksDeps = WebhookDeps & {
  readonly store: WebhookStore;
  readonly messages: Messages;
  readonly barrier: Pick<Barrier, 'pass'>;
  /** Known before the first `refresh`. */
  readonly known: KnownHooks;
};

type Answer<T> = Promise<Result<T, Fault> & Unconfirmed>;

/**
 * The webhooks of a gateway alone, or those that all gateways of a cluster share: then every gateway knows what each
 * hook wants, and whichever is free makes its calls, one at a time.
 */
export class Webhooks {
  readonly #deps: WebhooksDeps;
  readonly #caller: HookCaller;
  readonly #caps = new ReportedCaps();
  readonly tally: WebhookTally = { delivered: 0, failed: 0, dropped: 0 };
  #known: KnownHooks;
  #reading: Promise<Result<void, Fault>> = Promise.resolve(ok(undefined));

  constructor(deps: WebhooksDeps) {
    this.#deps = deps;
    this.#known = deps.known;
    const { tally } = this;
    this.#caller = new HookCaller({
      ...deps,
      tally,
      isNeeded: () => this.#known.hooks.length > 0,
      orgOf: (hookId) => this.#orgOf(hookId),
      onFailed: (call, failure, hook) => this.#noteFailure(call, failure, hook),
    });
    deps.messages.follow({
      onReady: () => this.#caller.look(),
      onDropped: (count) => {
        tally.dropped += count;
      },
    });
  }

  /** Makes calls from now on. */
  open(): void {
    this.#caller.open();
  }

  /** Notices are handed over, and calls under way end. */
  async close(): Promise<void> {
    await this.#deps.messages.close();
    await this.#caller.close();
  }

  get waiting(): number {
    return this.#known.waiting;
  }

  get counts(): { readonly active: number; readonly disabled: number } {
    const { hooks } = this.#known;
    const disabled = hooks.filter(({ disabledAtMs }) => disabledAtMs !== undefined).length;
    return { active: hooks.length - disabled, disabled };
  }

  /** Takes over what other gateways have changed. Resolves when a reading that began after the call has ended. */
  refresh(): Promise<Result<void, Fault>> {
    const read = async (): Promise<Result<void, Fault>> => {
      const known = await this.#deps.store.known();
      if (!known.ok) return known;
      this.#known = known.value;
      return ok(undefined);
    };
    this.#reading = this.#reading.then(read, read);
    return this.#reading;
  }

  /** Reports a decision of the governor; undefined where no hook wants it. */
  reportEffect(effect: ReportedEffect): Report | undefined {
    if (this.#known.hooks.length === 0) return undefined;
    const notice = noticeOf(effect, this.#deps.resetsAtMs);
    return notice && this.#report(notice);
  }

  /** Reports a check that a cap denied, once in each of its periods. */
  reportExceeded(draft: AuditDraft): Report | undefined {
    if (this.#known.hooks.length === 0) return undefined;
    const notice = exceededNotice(draft);
    return notice && this.#report(notice);
  }

  /** Reports what concerns the gateway as a whole. */
  reportOwn(type: 'policy.reload_failed' | 'audit.unwritable', data: Notice['data']): void {
    this.#report({ type, org: { id: null }, data })?.settle(true);
  }

  async create(principal: Principal, asked: NewWebhook): Answer<Webhook> {
    const { audit, store } = this.#deps;
    const made = newHook(principal, asked, this.#deps);
    if (!made.ok) return made;
    const hook = made.value;
    const all = await store.list();
    if (!all.ok) return all;
    if (isFull(all.value, hook.orgId)) return tooMany(hook.orgId);
    const recorded = await audit.record(auditOf('WebhookCreated', hook, principal.subject));
    if (!recorded.ok) return recorded;
    const created = await store.create(hook, MOST_WEBHOOKS);
    if (!created.ok) return created;
    if (created.value) return { ...made, unconfirmed: await this.#everywhere() };
    // Others were made meanwhile, and the log says that this one was.
    const withdrawn = await audit.record(auditOf('WebhookDeleted', hook, principal.subject));
    return withdrawn.ok ? tooMany(hook.orgId) : withdrawn;
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

  /** Makes the caller its maker, so that it ends with the caller, and no longer with who made it. */
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

  /** Deletes what these made; again after a fault. In a cluster, pass the barrier before you answer. */
  async endMade({ makers, actor, cascade }: EndMadeWebhooks): Promise<Result<MadeWebhooks, Fault>> {
    const all = await this.#deps.store.list();
    if (!all.ok) return all;
    const made = all.value.flatMap(({ hook }) => (makers.includes(hook.createdBy) ? [hook] : []));
    if (!cascade || made.length === 0) return ok({ deleted: [], kept: made });
    for (const hook of made) {
      const removed = await this.#remove(hook, actor);
      if (!removed.ok) return removed;
    }
    await this.refresh();
    return ok({ deleted: made, kept: [] });
  }

  async #remove(hook: Parameters<typeof auditOf>[1], actor: string): Promise<Result<void, Fault>> {
    const recorded = await this.#deps.audit.record(auditOf('WebhookDeleted', hook, actor));
    return recorded.ok ? this.#deps.store.remove(hook.id) : recorded;
  }

  /** Sends a message that reports nothing. Resolves with its id once it is in the store. */
  async test({ principal, id }: AskedWebhook): Promise<Result<{ readonly messageId: string }, Fault>> {
    const { messages, nowMs } = this.#deps;
    const found = await this.get({ principal, id });
    if (!found.ok) return found;
    const { disabledAtMs, orgId } = found.value.hook;
    if (disabledAtMs !== undefined) return isDisabled(id);
    const added = await messages.add({
      hookId: id,
      body: bodyOf(TEST_EVENT, { webhook_id: id, org_id: orgId }, nowMs()),
    });
    if (!added.ok) return added;
    return added.value === undefined ? TOO_MANY_WAIT : ok({ messageId: added.value });
  }

  /** Every gateway reports to it from now on, or does not any more. */
  async #everywhere(): Promise<readonly string[]> {
    const [names] = await Promise.all([this.#deps.barrier.pass('webhooks'), this.refresh()]);
    return names;
  }

  #report(notice: Notice): Report | undefined {
    const { messages, nowMs } = this.#deps;
    const hooks = this.#known.hooks.filter((hook) => wants(hook, notice));
    const cap = notice.type === 'budget.exceeded' ? capOf(notice.data) : undefined;
    if (hooks.length === 0 || !this.#caps.isNew(cap)) return undefined;
    this.#caps.add(cap);
    const body = bodyOf(notice.type, notice.data, nowMs());
    const held = hooks.flatMap(({ id: hookId }) => messages.hold({ hookId, body, cap }) ?? []);
    return {
      saved: Promise.all(held.map(({ saved }) => saved)),
      settle: (isRecorded) => {
        for (const { id } of held) isRecorded ? messages.letGo(id) : messages.withdraw(id);
        if (!isRecorded) this.#caps.forget(cap);
      },
    };
  }

  /** An unknown webhook is taken for an org's. */
  #orgOf(hookId: string): string | null {
    const known = this.#known.hooks.find(({ id }) => id === hookId);
    return known === undefined ? '' : known.orgId;
  }

  #noteFailure({ hookId, url }: TakenCall, failure: Failure, failed: FailedHook): void {
    const { failures, failingSinceMs, disabledAtMs, lost } = failed;
    if (failures === 1) warnOfFailure({ id: hookId, url }, failure.reason, this.#deps);
    const known = this.#known.hooks.find(({ id }) => id === hookId);
    if (disabledAtMs === undefined || known === undefined) return;
    this.tally.dropped += lost;
    const { hooks, waiting } = this.#known;
    this.#known = { hooks: hooks.map((hook) => (hook === known ? { ...hook, disabledAtMs } : hook)), waiting };
    this.#everywhere().catch((error: unknown) => this.#deps.onError(error, 'disabling a webhook'));
    const lastError = reasonFor(known.orgId, failure);
    const notice = disabledNotice({ ...known, url, failingSinceMs, lastError }, lost, this.#deps);
    this.#report(notice)?.settle(true);
  }
}
