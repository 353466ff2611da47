/** Webhooks of a gateway alone, and what waits for them: in memory, and in the embedded store for the next start. */
import { ok, type Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import { GIVE_UP_AFTER_MS, type Webhook, type WebhookStatus } from '../core/webhooks/webhook.ts';
import type { CallNote, FailedHook, KnownHooks, TakenCall, WebhookStore } from '../ports/webhook-store.ts';
import { isFull, MOST_WAITING, type WebhookDeps } from './hooks.ts';
import type { MessageListener, Messages, NewMessage } from './messages.ts';
import { hookRowOf, type MessageRow, messageRowOf, rowsOf, TABLE } from './rows.ts';

type Deps = Pick<WebhookDeps, 'states' | 'nowMs' | 'after' | 'newId' | 'onError'>;
type Line = {
  hook: Webhook;
  readonly waiting: MessageRow[];
  characters: number;
  retryAtMs: number;
  callUntilMs: number;
};

const SAVE_DROPPED_AFTER_MS = 1_000;

/** A message that cannot be saved is sent all the same, and nothing fails for its sake. */
export class OwnWebhooks implements WebhookStore, Messages {
  readonly #deps: Deps;
  readonly #lines = new Map<string, Line>();
  /** Messages that must not be sent yet, with their hooks: what they report is not recorded. */
  readonly #held = new Map<string, string>();
  /** Hooks whose number of dropped messages is not saved yet. */
  readonly #dropping = new Set<string>();
  #listener: MessageListener | undefined;
  #lastNumber = 0;
  #stopSaving: (() => void) | undefined;

  /** Takes up the webhooks of earlier runs, with what still waits. */
  constructor(deps: Deps) {
    this.#deps = deps;
    const { hooks, messages } = rowsOf(deps.states);
    for (const hook of hooks) this.#lines.set(hook.id, lineOf(hook));
    for (const message of messages) {
      this.#push(message);
      this.#lastNumber = message.number;
    }
  }

  follow(listener: MessageListener): void {
    this.#listener = listener;
  }

  hold({ hookId, body }: NewMessage): { readonly id: string; readonly saved: Promise<void> } | undefined {
    const line = this.#lines.get(hookId);
    if (line === undefined || line.hook.disabledAtMs !== undefined) return undefined;
    const { number, bytes } = MOST_WAITING;
    if (line.waiting.length >= number || line.characters + body.length > bytes) {
      this.#drop(line);
      return undefined;
    }
    this.#lastNumber += 1;
    const id = `msg_${this.#deps.newId()}`;
    const row: MessageRow = { kind: 'message', hookId, id, number: this.#lastNumber, body };
    this.#push(row);
    this.#held.set(id, hookId);
    const saved = this.#quietly(this.#deps.states.save(TABLE, messageRowOf(id), row), 'saving a message of a webhook');
    return { id, saved };
  }

  letGo(id: string): void {
    this.#held.delete(id);
    this.#listener?.onReady();
  }

  withdraw(id: string): void {
    const line = this.#lines.get(this.#held.get(id) ?? '');
    if (line !== undefined) this.#forget(line, id);
    this.letGo(id);
  }

  async add(message: NewMessage): Promise<Result<string | undefined, Fault>> {
    const held = this.hold(message);
    await held?.saved;
    if (held !== undefined) this.letGo(held.id);
    return ok(held?.id);
  }

  async close(): Promise<void> {
    this.#stopSaving?.();
    await this.#saveDropped();
  }

  /** Its `waiting` is up to date at any time. */
  get knownHooks(): KnownHooks {
    const lines = this.#lines;
    return {
      hooks: [...lines.values()].map(({ hook }) => hook),
      get waiting() {
        return [...lines.values()].reduce((sum, { waiting }) => sum + waiting.length, 0);
      },
    };
  }

  async known(): Promise<Result<KnownHooks, Fault>> {
    return ok(this.knownHooks);
  }

  async list(): Promise<Result<readonly WebhookStatus[], Fault>> {
    return ok([...this.#lines.values()].reverse().map(statusOf));
  }

  async create(hook: Webhook): Promise<Result<boolean, Fault>> {
    if (isFull([...this.#lines.values()], hook.orgId)) return ok(false);
    const line = lineOf(hook);
    this.#lines.set(hook.id, line);
    await this.#saveHook(line).catch((error: unknown) => {
      this.#lines.delete(hook.id);
      throw error;
    });
    return ok(true);
  }

  async give(id: string, to: string): Promise<Result<boolean, Fault>> {
    const line = this.#lines.get(id);
    if (line === undefined) return ok(false);
    line.hook = { ...line.hook, createdBy: to };
    await this.#saveHook(line);
    return ok(true);
  }

  /** If that fails, it goes on. */
  async remove(id: string): Promise<Result<void, Fault>> {
    const { states } = this.#deps;
    const line = this.#lines.get(id);
    if (line === undefined) return ok(undefined);
    this.#lines.delete(id); // first, so that no call saves it again
    await Promise.all([
      states.remove(TABLE, hookRowOf(id)),
      ...line.waiting.map((message) => states.remove(TABLE, messageRowOf(message.id))),
    ]).catch((error: unknown) => {
      this.#lines.set(id, line);
      throw error;
    });
    return ok(undefined);
  }

  async take(forMs: number, most: number): Promise<Result<readonly TakenCall[], Fault>> {
    const nowMs = this.#deps.nowMs();
    const due = [...this.#lines.values()].flatMap((line) => {
      const [message] = line.waiting;
      const isDue = line.hook.disabledAtMs === undefined && Math.max(line.retryAtMs, line.callUntilMs) <= nowMs;
      return isDue && message !== undefined && !this.#held.has(message.id) ? [{ line, message }] : [];
    });
    return ok(
      due.slice(0, most).map(({ line, message: { hookId, id, body } }) => {
        line.callUntilMs = nowMs + forMs;
        const { url, secret, failures } = line.hook;
        return { hookId, url, secret, id, body, failures };
      }),
    );
  }

  async note({ hookId, id, failure }: CallNote): Promise<Result<FailedHook | undefined, Fault>> {
    const line = this.#lines.get(hookId);
    if (line === undefined) return ok(undefined);
    line.callUntilMs = 0;
    if (failure === undefined) {
      this.#forget(line, id);
      if (line.hook.failures > 0) this.#change(line, { failures: 0, failingSinceMs: undefined, lastError: undefined });
      return ok(undefined);
    }
    const nowMs = this.#deps.nowMs();
    const { failingSinceMs = nowMs, failures, dropped } = line.hook;
    const disabledAtMs = nowMs - failingSinceMs >= GIVE_UP_AFTER_MS ? nowMs : undefined;
    const lost = disabledAtMs === undefined ? [] : [...line.waiting];
    for (const message of lost) this.#forget(line, message.id);
    line.retryAtMs = nowMs + failure.retryMs;
    const failed = { failures: failures + 1, failingSinceMs, disabledAtMs };
    this.#change(line, { ...failed, lastError: failure.reason, dropped: dropped + lost.length });
    return ok({ ...failed, lost: lost.length });
  }

  #push(message: MessageRow): void {
    const line = this.#lines.get(message.hookId);
    if (line === undefined) return; // left by a cluster that has the hook
    line.waiting.push(message);
    line.characters += message.body.length;
  }

  #forget(line: Line, id: string): void {
    const at = line.waiting.findIndex((message) => message.id === id);
    const [gone] = at === -1 ? [] : line.waiting.splice(at, 1);
    if (gone === undefined) return;
    this.#held.delete(id);
    line.characters -= gone.body.length;
    void this.#quietly(this.#deps.states.remove(TABLE, messageRowOf(id)), 'removing a message of a webhook');
  }

  /** Thousands may be dropped in a second, so their number is saved a little later. */
  #drop(line: Line): void {
    line.hook = { ...line.hook, dropped: line.hook.dropped + 1 };
    this.#dropping.add(line.hook.id);
    this.#listener?.onDropped(1);
    this.#stopSaving ??= this.#deps.after(SAVE_DROPPED_AFTER_MS, () => void this.#saveDropped());
  }

  async #saveDropped(): Promise<void> {
    this.#stopSaving = undefined;
    const lines = [...this.#dropping].flatMap((id) => this.#lines.get(id) ?? []);
    this.#dropping.clear();
    await Promise.all(lines.map((line) => this.#change(line, {})));
  }

  #change(line: Line, change: Partial<Webhook>): Promise<void> {
    line.hook = { ...line.hook, ...change };
    return this.#quietly(this.#saveHook(line), 'saving a webhook');
  }

  #saveHook({ hook }: Line): Promise<void> {
    return this.#deps.states.save(TABLE, hookRowOf(hook.id), { kind: 'hook', hook });
  }

  #quietly(written: Promise<void>, doing: string): Promise<void> {
    return written.catch((error: unknown) => this.#deps.onError(error, doing));
  }
}

const lineOf = (hook: Webhook): Line => ({ hook, waiting: [], characters: 0, retryAtMs: 0, callUntilMs: 0 });

const statusOf = ({ hook: { secret: _, ...hook }, waiting }: Line): WebhookStatus => ({
  hook,
  waiting: waiting.length,
});
