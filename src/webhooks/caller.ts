import { type Backoff, backoffMs } from '../core/base/backoff.ts';
import { ok } from '../core/base/result.ts';
import type { CallNote, FailedHook, TakenCall, WebhookStore } from '../ports/webhook-store.ts';
import { type Delivery, type Failure, reasonFor } from './delivery.ts';
import { type Clocks, MOST_WEBHOOKS, type WebhookDeps, type WebhookTally } from './hooks.ts';

export type CallerOptions = Pick<WebhookDeps, 'send' | 'after' | 'onError'> & {
  readonly store: Pick<WebhookStore, 'take' | 'note'>;
  readonly clocks: Clocks;
  /** Whether there are hooks at all. */
  readonly isNeeded: () => boolean;
  /** Null: of all orgs. */
  readonly orgOf: (hookId: string) => string | null;
  readonly onFailed: (call: TakenCall, failure: Failure, hook: FailedHook) => void;
  readonly tally: WebhookTally;
};

type Noted = { readonly call: TakenCall; readonly note: CallNote; readonly failure: Failure | undefined };

/** A call takes 10 s at most, and begins within 3 s after its hook was asked for: it ends before others may call. */
const TAKEN_FOR_MS = 15_000;
const BEGINS_WITHIN_MS = 3_000;
/** How long to wait before a hook is called again whose call has failed. */
const RETRY: Backoff = { firstMs: 4_000, longestMs: 3_600_000 };
/** How often it is looked for what other gateways have left. */
const LOOK_EVERY_MS = 1_000;
/**
 * A stop waits so long for calls under way. A call that is cut off is sent again by another gateway, or after the
 * start.
 */
const CLOSES_WITHIN_MS = 2_000;

/**
 * Makes the calls of webhooks: it takes a hook with its oldest message from the store, calls it, and notes what became
 * of that, before anybody takes the hook again. A result that cannot be noted is noted later.
 */
export class HookCaller {
  readonly #options: CallerOptions;
  readonly #calls = new Map<string, Promise<void>>();
  readonly #notes: Noted[] = [];
  #noting: Promise<boolean> | undefined;
  #isOpen = false;
  #isLooking = false;
  #isDue = false;
  #stopTimer: (() => void) | undefined;

  constructor(options: CallerOptions) {
    this.#options = options;
  }

  open(): void {
    this.#isOpen = true;
    this.#tick();
  }

  /** Takes no more hooks, and notes what becomes of the calls under way. */
  async close(): Promise<void> {
    this.#isOpen = false;
    this.#stopTimer?.();
    const late = new Promise<void>((resolve) => {
      this.#stopTimer = this.#options.after(CLOSES_WITHIN_MS, resolve);
    });
    await Promise.race([Promise.all(this.#calls.values()), late]);
    this.#stopTimer?.();
    await this.#noteAll();
  }

  /** A hook may be due. */
  look(): void {
    this.#isDue = true;
    if (this.#isOpen && !this.#isLooking) void this.#look();
  }

  #tick(): void {
    if (this.#options.isNeeded() || this.#notes.length > 0) this.look();
    this.#stopTimer = this.#options.after(LOOK_EVERY_MS, () => this.#tick());
  }

  /** Never rejects. */
  async #look(): Promise<void> {
    this.#isLooking = true;
    try {
      while (this.#isDue && this.#isOpen) {
        this.#isDue = false;
        // Messages that this run has sent and not noted, it would take once more.
        if (await this.#noteAll()) await this.#takeDue();
      }
    } catch (error) {
      this.#options.onError(error, 'taking webhooks from the store');
    } finally {
      this.#isLooking = false;
    }
  }

  async #takeDue(): Promise<void> {
    const { store, clocks } = this.#options;
    const most = MOST_WEBHOOKS.inAll - this.#calls.size;
    if (most <= 0) return;
    const asked = { steadyMs: clocks.steadyMs(), wallMs: clocks.wallMs() };
    const taken = await store.take(TAKEN_FOR_MS, most);
    if (!taken.ok || !this.#isOpen) return;
    // A process that was stopped meanwhile must not call: by now somebody else may.
    const passedMs = Math.max(clocks.steadyMs() - asked.steadyMs, clocks.wallMs() - asked.wallMs);
    if (passedMs > BEGINS_WITHIN_MS) return;
    for (const call of taken.value) {
      if (this.#calls.has(call.id)) continue; // the machine was suspended for longer than it was taken for
      const made = this.#make(call).finally(() => {
        this.#calls.delete(call.id);
        this.look();
      });
      this.#calls.set(call.id, made);
    }
  }

  /** Never rejects. */
  async #make(call: TakenCall): Promise<void> {
    const { send, onError, tally } = this.#options;
    const { hookId, id, url, secret, body, failures } = call;
    const delivery = await send({ url, secret, id, body }).catch((error: unknown): Delivery => {
      onError(error, 'calling a webhook');
      return { isDelivered: false, reason: 'the gateway could not make the call' };
    });
    if (delivery.isDelivered) {
      tally.delivered += 1;
      this.#notes.push({ call, note: { hookId, id, failure: undefined }, failure: undefined });
    } else if (this.#isOpen) {
      tally.failed += 1;
      const reason = reasonFor(this.#options.orgOf(hookId), delivery).replaceAll('\0', '');
      const failure = { reason, retryMs: backoffMs(failures + 1, RETRY) };
      this.#notes.push({ call, note: { hookId, id, failure }, failure: delivery });
    }
  }

  /** False where the database could not take one. */
  async #noteAll(): Promise<boolean> {
    if (this.#notes.length === 0) return true;
    this.#noting ??= this.#noteEach();
    return this.#noting;
  }

  async #noteEach(): Promise<boolean> {
    try {
      for (let [first] = this.#notes; first !== undefined; [first] = this.#notes) {
        if (!(await this.#noteOne(first))) return false;
        this.#notes.shift();
      }
      return true;
    } finally {
      this.#noting = undefined;
    }
  }

  async #noteOne({ call, note, failure }: Noted): Promise<boolean> {
    const { store, after, onError, onFailed } = this.#options;
    const noted = await store.note(note).catch((error: unknown) => {
      // A defect, which must not hold up the other hooks: this one is called again.
      onError(error, 'noting a call of a webhook');
      return ok(undefined);
    });
    if (noted.ok && noted.value !== undefined && failure !== undefined) {
      onFailed(call, failure, noted.value);
      after(note.failure?.retryMs ?? 0, () => this.look());
    }
    return noted.ok;
  }
}
