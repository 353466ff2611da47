import { createHash } from 'node:crypto';
import { ok, type Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import type { MessageWrites, SharedMessage, SharedWebhooks } from '../ports/webhook-store.ts';
import { MOST_WAITING, type WebhookDeps } from './hooks.ts';
import type { MessageListener, Messages, NewMessage } from './messages.ts';
import { hookRowOf, type MessageRow, messageRowOf, rowsOf, TABLE } from './rows.ts';

/** `states`: what this gateway had when it was alone, and what the database could not take yet. */
export type OutboxOptions = Pick<WebhookDeps, 'states' | 'after' | 'newId' | 'onError' | 'log'> & {
  readonly store: Pick<SharedWebhooks, 'adopt' | 'write'>;
};

type Entry = SharedMessage & {
  readonly number: number;
  /** How many reports hold it: of a message that is sent once there may be several. */
  holders: number;
  isHeld: boolean;
  isWithdrawn: boolean;
  /** `maybe`: it was sent there, or withdrawn, and no answer has come. */
  isThere: 'no' | 'maybe' | 'yes';
  /** It is in the embedded store. */
  isKept: boolean;
  /** Resolves once it would survive this gateway. */
  saved: Promise<void>;
  onSaved: () => void;
  stopWaiting: () => void;
};

const NOTHING = { saved: Promise.resolve(), onSaved: () => undefined, stopWaiting: () => undefined };
/** The answer to what a message reports waits for the database for so long; then it is kept here for now. */
const SAVE_WITHIN_MS = 1_000;
const RETRY_MS = 1_000;
const AT_ONCE = 200;

/**
 * The messages of this gateway on their way to the database, where every gateway finds them. While it is away they are
 * kept in the embedded store.
 */
export class Outbox implements Messages {
  readonly #options: OutboxOptions;
  #listener: MessageListener | undefined;
  /** In their order, until the database has the last of it. */
  readonly #entries = new Map<string, Entry>();
  readonly #waiting = new Map<string, { count: number; bytes: number }>();
  #dropped = new Map<string, number>();
  #lastNumber = 0;
  #writing: Promise<void> | undefined;
  #isDue = false;
  #stopRetry: (() => void) | undefined;

  constructor(options: OutboxOptions) {
    this.#options = options;
  }

  follow(listener: MessageListener): void {
    this.#listener = listener;
  }

  /** Brings the webhooks that this gateway had alone. Call it once it has joined, again after a fault. */
  async bringHooks(): Promise<Result<void, Fault>> {
    const { states, store, log } = this.#options;
    const { hooks } = rowsOf(states);
    if (hooks.length === 0) return ok(undefined);
    const brought = await store.adopt(hooks);
    if (!brought.ok) return brought;
    log.info('brought the webhooks of this gateway into the cluster', { webhooks: brought.value });
    // Else they would come back at the next start, when they were deleted meanwhile.
    await Promise.all(hooks.map(({ id }) => states.remove(TABLE, hookRowOf(id))));
    return ok(undefined);
  }

  /** Brings what it could not hand over before. Call it once, after its hooks. */
  async bringMessages(): Promise<void> {
    for (const { id, hookId, number, body, isOnce = false } of rowsOf(this.#options.states).messages) {
      this.#lastNumber = Math.max(this.#lastNumber, number);
      const state = { holders: 0, isHeld: false, isWithdrawn: false, isThere: 'no', isKept: true } as const;
      this.#put({ id, hookId, number, body, isOnce, ...state, ...NOTHING });
    }
    await this.#written();
  }

  hold({ hookId, body, cap }: NewMessage): { readonly id: string; readonly saved: Promise<void> } | undefined {
    const isOnce = cap !== undefined;
    const id = isOnce ? onceIdOf(hookId, cap) : this.#newId();
    const same = this.#entries.get(id);
    if (same !== undefined) return { id, saved: this.#holdAgain(same) };
    const { count, bytes } = this.#waiting.get(hookId) ?? { count: 0, bytes: 0 };
    if (count >= MOST_WAITING.number || bytes + body.length > MOST_WAITING.bytes) {
      this.#drop(hookId);
      return undefined;
    }
    this.#lastNumber += 1;
    const number = this.#lastNumber;
    const state = { holders: 1, isHeld: true, isWithdrawn: false, isThere: 'no', isKept: false } as const;
    const entry: Entry = { id, hookId, body, isOnce, number, ...state, ...NOTHING };
    this.#put(entry);
    this.#save(entry);
    return { id, saved: entry.saved };
  }

  /** Past whatever waits to be written, so that a fault is told at once. */
  async add({ hookId, body }: NewMessage): Promise<Result<string | undefined, Fault>> {
    const id = this.#newId();
    const none = { letGo: [], withdrawn: [], dropped: new Map<string, number>() };
    const message = { id, hookId, body, isOnce: false, isHeld: false };
    const written = await this.#options.store.write({ added: [message], ...none }, MOST_WAITING);
    if (!written.ok) return written;
    if (written.value > 0) this.#listener?.onDropped(written.value);
    else this.#listener?.onReady();
    return ok(written.value > 0 ? undefined : id);
  }

  /** Holds a once-only message again: it was withdrawn, or its event was noticed again before it was sent. */
  #holdAgain(entry: Entry): Promise<void> {
    entry.holders += 1;
    if (!entry.isWithdrawn) return entry.saved;
    entry.isWithdrawn = false;
    entry.isHeld = true;
    if (entry.isThere === 'maybe') this.#save(entry);
    this.#isDue = true;
    return entry.saved;
  }

  /** Into the database, and here where that takes too long. */
  #save(entry: Entry): void {
    const { id } = entry;
    entry.stopWaiting();
    entry.onSaved(); // nobody waits for what was withdrawn
    entry.saved = new Promise((resolve) => {
      entry.onSaved = resolve;
    });
    entry.stopWaiting = this.#options.after(SAVE_WITHIN_MS, () => this.#keep(id));
    if (this.#stopRetry === undefined) this.#writeSoon();
    else this.#keep(id); // the database is known to be away
  }

  letGo(id: string): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    entry.isHeld = false;
    this.#writeSoon();
  }

  /** Withdraws a message: its event did not happen. */
  withdraw(id: string): void {
    const entry = this.#entries.get(id);
    if (entry === undefined || !entry.isHeld) return;
    entry.holders -= 1;
    if (entry.holders > 0) return;
    entry.isWithdrawn = true;
    this.#unkeep(entry);
    if (entry.isThere === 'no') this.#settle(entry);
    else this.#writeSoon();
  }

  async close(): Promise<void> {
    await this.#written();
    this.#stopRetry?.();
  }

  /** Never rejects. */
  #writeSoon(): void {
    this.#isDue = true;
    if (this.#stopRetry === undefined) void this.#written();
  }

  /** Resolves when what is due was written, or could not be. */
  #written(): Promise<void> {
    this.#writing ??= this.#writeAll();
    return this.#writing;
  }

  async #writeAll(): Promise<void> {
    await undefined; // what one report brings is written together
    try {
      while (this.#isDue) {
        this.#isDue = false;
        const writes = this.#next();
        if (writes !== undefined && !(await this.#write(writes))) return this.#retryLater();
      }
    } finally {
      this.#writing = undefined; // in the same turn, so that nothing becomes due in between
    }
  }

  #next(): MessageWrites | undefined {
    const entries = [...this.#entries.values()];
    const isLetGo = ({ isThere, isHeld, isWithdrawn }: Entry): boolean => isThere === 'yes' && !isHeld && !isWithdrawn;
    // A once-only message is added again: the gateway that was the first to report it may have withdrawn it.
    const isNew = (entry: Entry): boolean =>
      (entry.isThere !== 'yes' && !entry.isWithdrawn) || (entry.isOnce && isLetGo(entry));
    const added = entries.filter(isNew).slice(0, AT_ONCE);
    const letGo = entries.filter((entry) => isLetGo(entry) && !entry.isOnce);
    const withdrawn = entries.filter(({ isWithdrawn }) => isWithdrawn);
    if (added.length + letGo.length + withdrawn.length + this.#dropped.size === 0) return undefined;
    if (added.length === AT_ONCE) this.#isDue = true; // there may be more
    for (const entry of [...added, ...withdrawn]) entry.isThere = 'maybe';
    const idOf = ({ id }: Entry): string => id;
    return {
      added: added.map(({ id, hookId, body, isOnce, isHeld }) => ({ id, hookId, body, isOnce, isHeld })),
      letGo: letGo.map(idOf),
      withdrawn: withdrawn.map(idOf),
      dropped: this.#dropped,
    };
  }

  async #write(writes: MessageWrites): Promise<boolean> {
    const { store, onError } = this.#options;
    this.#dropped = new Map();
    const written = await store.write(writes, MOST_WAITING).catch((error: unknown) => {
      onError(error, 'writing messages of webhooks to the database');
      return undefined;
    });
    if (written?.ok !== true) {
      for (const [hookId, count] of writes.dropped) this.#drop(hookId, count, 0);
      for (const { id } of writes.added) this.#keep(id);
      return false;
    }
    if (written.value > 0) this.#listener?.onDropped(written.value);
    for (const { id, isHeld } of writes.added) this.#added(id, isHeld);
    for (const id of writes.letGo) this.#settle(this.#entries.get(id));
    for (const id of writes.withdrawn) this.#withdrawn(id);
    if (writes.letGo.length > 0 || writes.added.some(({ isHeld }) => !isHeld)) this.#listener?.onReady();
    return true;
  }

  #added(id: string, isHeld: boolean): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    entry.isThere = 'yes';
    entry.stopWaiting();
    if (!isHeld) return this.#settle(entry);
    this.#unkeep(entry);
    entry.onSaved();
  }

  /** A message that was held again meanwhile is added once more. */
  #withdrawn(id: string): void {
    const entry = this.#entries.get(id);
    if (entry?.isWithdrawn === true) this.#settle(entry);
    else if (entry !== undefined) this.#isDue = true;
  }

  /** Nothing is left to be done about it here. */
  #settle(entry: Entry | undefined): void {
    if (entry === undefined || !this.#entries.delete(entry.id)) return;
    const waiting = this.#waiting.get(entry.hookId)!;
    waiting.count -= 1;
    waiting.bytes -= entry.body.length;
    if (waiting.count === 0) this.#waiting.delete(entry.hookId);
    entry.stopWaiting();
    this.#unkeep(entry);
    entry.onSaved();
  }

  #put(entry: Entry): void {
    this.#entries.set(entry.id, entry);
    const waiting = this.#waiting.get(entry.hookId) ?? { count: 0, bytes: 0 };
    waiting.count += 1;
    waiting.bytes += entry.body.length;
    this.#waiting.set(entry.hookId, waiting);
    this.#isDue = true;
  }

  /** The database is away, or slow. A message that cannot be saved is sent all the same, and nothing fails for it. */
  #keep(id: string): void {
    const entry = this.#entries.get(id);
    if (entry === undefined || entry.isKept || entry.isWithdrawn || entry.isThere === 'yes') return;
    entry.isKept = true;
    entry.stopWaiting();
    const { hookId, number, body, isOnce } = entry;
    const row: MessageRow = { kind: 'message', id, hookId, number, body, isOnce };
    void this.#quietly(this.#options.states.save(TABLE, messageRowOf(id), row), 'saving a message of a webhook').then(
      entry.onSaved,
    );
  }

  #unkeep(entry: Entry): void {
    if (!entry.isKept) return;
    entry.isKept = false;
    void this.#quietly(this.#options.states.remove(TABLE, messageRowOf(entry.id)), 'removing a message of a webhook');
  }

  #drop(hookId: string, count = 1, news = count): void {
    this.#dropped.set(hookId, (this.#dropped.get(hookId) ?? 0) + count);
    if (news > 0) this.#listener?.onDropped(news);
    this.#isDue = true;
  }

  #retryLater(): void {
    this.#isDue = true;
    this.#stopRetry ??= this.#options.after(RETRY_MS, () => {
      this.#stopRetry = undefined;
      this.#writeSoon();
    });
  }

  #newId(): string {
    return `msg_${this.#options.newId()}`;
  }

  #quietly(written: Promise<void>, doing: string): Promise<void> {
    return written.catch((error: unknown) => this.#options.onError(error, doing));
  }
}

/** The same at every gateway that notices the same, so that it is sent once. */
function onceIdOf(hookId: string, cap: string): string {
  const digits = createHash('sha256').update(`${hookId} ${cap}`).digest('hex');
  return `msg_${digits.slice(0, 32)}`;
}
