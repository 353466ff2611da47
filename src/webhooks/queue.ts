/** The messages of one webhook: in order, one call at a time, until each has arrived (docs/webhooks.md). */
import { GIVE_UP_AFTER_MS, retryDelayMs, type Webhook } from '../core/webhooks/webhook.ts';
import { type Delivery, type Failure, reasonFor } from './delivery.ts';
import { MOST_WAITING, type WebhookDeps, type WebhookTally } from './hooks.ts';

export type Message = {
  readonly id: string;
  /** Counts up over all hooks, for their order after a restart. */
  readonly number: number;
  readonly body: string;
};

/** Stored rows: webhooks and their messages, in one table. `isOnce`: of a cluster only. */
export type WebhookRow =
  | { readonly kind: 'hook'; readonly hook: Webhook }
  | ({ readonly kind: 'message'; readonly hookId: string; readonly isOnce?: boolean } & Message);

export type QueueDeps = Pick<WebhookDeps, 'states' | 'send' | 'nowMs' | 'after' | 'onError'> & {
  readonly onFailed: (hook: Webhook, reason: string) => void;
  readonly onDisabled: (hook: Webhook, lost: number) => void;
  readonly tally: WebhookTally;
};

const SAVE_DROPPED_AFTER_MS = 1_000;

const TABLE = 'webhooks';
const hookRow = (id: string): string => `hook:${id}`;
const messageRow = (id: string): string => `message:${id}`;

export class WebhookQueue {
  readonly #deps: QueueDeps;
  #hook: Webhook;
  #waiting: Message[] = [];
  #characters = 0;
  /** The ids of messages that must not be sent yet: what they report is not recorded. */
  readonly #held = new Set<string>();
  #isCalling = false;
  #isOpen = false;
  #stopRetry: (() => void) | undefined;
  #stopSaving: (() => void) | undefined;

  constructor(hook: Webhook, deps: QueueDeps) {
    this.#hook = hook;
    this.#deps = deps;
  }

  get hook(): Webhook {
    return this.#hook;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Takes back a message of an earlier run; call it in their order, and before `open`. */
  restore(message: Message): void {
    this.#waiting.push(message);
    this.#characters += message.body.length;
  }

  /** Makes calls from now on. */
  open(): void {
    this.#isOpen = true;
    this.#next();
  }

  /** Makes no more calls. Waiting messages stay in the store. */
  close(): void {
    this.#isOpen = false;
    this.#stopRetry?.();
    this.#stopRetry = undefined;
    this.#stopSaving?.();
  }

  saveHook(): Promise<void> {
    return this.#deps.states.save(TABLE, hookRow(this.#hook.id), { kind: 'hook', hook: this.#hook });
  }

  /** Resolves once its new maker is in the store. */
  give(to: string): Promise<void> {
    this.#hook = { ...this.#hook, createdBy: to };
    return this.saveHook();
  }

  /** Closes it, and removes it and its messages from the store. If that fails, it goes on. */
  async remove(): Promise<void> {
    this.close();
    const { states } = this.#deps;
    try {
      await Promise.all([
        states.remove(TABLE, hookRow(this.#hook.id)),
        ...this.#waiting.map(({ id }) => states.remove(TABLE, messageRow(id))),
      ]);
    } catch (error) {
      this.open();
      throw error;
    }
  }

  /**
   * Has the message sent after those that wait, but not before it is let go. Resolves once it is in the store;
   * undefined where too many wait, and it is dropped.
   */
  hold(message: Message): Promise<void> | undefined {
    const { number, bytes } = MOST_WAITING;
    if (this.#waiting.length >= number || this.#characters + message.body.length > bytes) {
      this.#drop(1);
      return undefined;
    }
    this.restore(message);
    this.#held.add(message.id);
    const row: WebhookRow = { kind: 'message', hookId: this.#hook.id, ...message };
    // A message that cannot be saved is sent all the same, and nothing fails for its sake.
    return this.#quietly(this.#deps.states.save(TABLE, messageRow(message.id), row), 'saving a message of a webhook');
  }

  letGo(id: string): void {
    this.#held.delete(id);
    this.#next();
  }

  /** Withdraws a message: its event did not happen. */
  withdraw(id: string): void {
    this.#held.delete(id);
    this.#take(id);
    this.#next();
  }

  #next(): void {
    const [message] = this.#waiting;
    if (!this.#isOpen || this.#isCalling || this.#stopRetry !== undefined) return;
    if (message === undefined || this.#held.has(message.id) || this.#hook.disabledAtMs !== undefined) return;
    this.#isCalling = true;
    void this.#call(message);
  }

  async #call(message: Message): Promise<void> {
    const { url, secret } = this.#hook;
    const delivery = await this.#deps
      .send({ url, secret, id: message.id, body: message.body })
      .catch((error: unknown): Delivery => {
        this.#deps.onError(error, 'calling a webhook');
        return { isDelivered: false, reason: 'the gateway could not make the call' };
      });
    this.#isCalling = false;
    if (!this.#isOpen) return; // removed meanwhile, or to be called again after a restart
    if (delivery.isDelivered) this.#succeed(message);
    else this.#fail(delivery);
    this.#next();
  }

  #succeed({ id }: Message): void {
    this.#deps.tally.delivered += 1;
    this.#take(id);
    if (this.#hook.failures > 0) this.#change({ failures: 0, failingSinceMs: undefined, lastError: undefined });
  }

  #fail(failure: Failure): void {
    const { nowMs, after, onFailed, tally } = this.#deps;
    const { failingSinceMs = nowMs(), failures } = this.#hook;
    tally.failed += 1;
    this.#change({ failures: failures + 1, failingSinceMs, lastError: reasonFor(this.#hook.orgId, failure) });
    if (failures === 0) onFailed(this.#hook, failure.reason);
    if (nowMs() - failingSinceMs >= GIVE_UP_AFTER_MS) return this.#disable();
    this.#stopRetry = after(retryDelayMs(failures + 1), () => {
      this.#stopRetry = undefined;
      this.#next();
    });
  }

  #disable(): void {
    const lost = this.#waiting.length;
    this.#change({ disabledAtMs: this.#deps.nowMs() });
    for (const { id } of [...this.#waiting]) this.#take(id);
    this.#drop(lost);
    this.#deps.onDisabled(this.#hook, lost);
  }

  /** Thousands may be dropped in a second, so their number is saved a little later. */
  #drop(count: number): void {
    if (count === 0) return;
    this.#deps.tally.dropped += count;
    this.#hook = { ...this.#hook, dropped: this.#hook.dropped + count };
    this.#stopSaving ??= this.#deps.after(SAVE_DROPPED_AFTER_MS, () => {
      this.#stopSaving = undefined;
      this.#change({});
    });
  }

  #change(change: Partial<Webhook>): void {
    this.#hook = { ...this.#hook, ...change };
    void this.#quietly(this.saveHook(), 'saving a webhook');
  }

  #take(id: string): void {
    const at = this.#waiting.findIndex((message) => message.id === id);
    const [taken] = at === -1 ? [] : this.#waiting.splice(at, 1);
    if (taken === undefined) return;
    this.#characters -= taken.body.length;
    void this.#quietly(this.#deps.states.remove(TABLE, messageRow(id)), 'removing a message of a webhook');
  }

  #quietly(written: Promise<void>, doing: string): Promise<void> {
    return written.catch((error: unknown) => this.#deps.onError(error, doing));
  }
}
