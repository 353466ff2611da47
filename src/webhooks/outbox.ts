import type { MessageWrites, SharedMessage, SharedWebhooks } from '../ports/shared-webhooks.ts';
import { MOST_WAITING, type WebhookDeps } from './hooks.ts';
import type { WebhookRow } from './queue.ts';

export type OutboxOptions = Pick<WebhookDeps, 'states' | 'after' | 'onError'> & {
  readonly store: Pick<SharedWebhooks, 'write'>;
  /** Messages are there to be sent. */
  readonly onWritten: () => void;
  readonly onDropped: (count: number) => void;
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

const TABLE = 'webhooks';
const NOTHING = { saved: Promise.resolve(), onSaved: () => undefined, stopWaiting: () => undefined };
const rowIdOf = (id: string): string => `message:${id}`;
/** The answer to what a message reports waits for the database for so long; then it is kept here for now. */
const SAVE_WITHIN_MS = 1_000;
const RETRY_MS = 1_000;
const AT_ONCE = 200;

/**
 * The messages of this gateway on their way to the database, where every gateway finds them. While it is away they are
 * kept in the embedded store.
 */
export class Outbox {
  readonly #options: OutboxOptions;
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

  /** Takes up what an earlier run has left. */
  restore({ id, hookId, number, body, isOnce = false }: WebhookRow & { readonly kind: 'message' }): void {
    this.#lastNumber = Math.max(this.#lastNumber, number);
    this.#put({
      id,
      hookId,
      number,
      body,
      isOnce,
      holders: 0,
      isHeld: false,
      isWithdrawn: false,
      isThere: 'no',
      isKept: true,
      saved: Promise.resolve(),
      onSaved: () => undefined,
      stopWaiting: () => undefined,
    });
  }

  /**
   * The message is not sent before it is let go. Resolves once it would survive this gateway; undefined where too many
   * wait, and it is dropped.
   */
  hold(message: SharedMessage): Promise<void> | undefined {
    const { id, hookId, body } = message;
    const same = this.#entries.get(id);
    if (same !== undefined) return this.#holdAgain(same);
    const { count, bytes } = this.#waiting.get(hookId) ?? { count: 0, bytes: 0 };
    if (count >= MOST_WAITING.number || bytes + body.length > MOST_WAITING.bytes) {
      this.#drop(hookId);
      return undefined;
    }
    this.#lastNumber += 1;
    const number = this.#lastNumber;
    const state = { holders: 1, isHeld: true, isWithdrawn: false, isThere: 'no', isKept: false } as const;
    const entry: Entry = { ...message, number, ...state, ...NOTHING };
    this.#put(entry);
    this.#save(entry);
    return entry.saved;
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
    if (this.#stopRetry === undefined) this.write();
    else this.#keep(id); // the database is known to be away
  }

  letGo(id: string): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    entry.isHeld = false;
    this.write();
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
    else this.write();
  }

  /** Writes what is due, soon. Never rejects. */
  write(): void {
    this.#isDue = true;
    if (this.#stopRetry === undefined) void this.written();
  }

  /** Resolves when what is due was written, or could not be. */
  written(): Promise<void> {
    this.#writing ??= this.#writeAll();
    return this.#writing;
  }

  close(): void {
    this.#stopRetry?.();
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
    const { store, onError, onWritten, onDropped } = this.#options;
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
    if (written.value > 0) onDropped(written.value);
    for (const { id, isHeld } of writes.added) this.#added(id, isHeld);
    for (const id of writes.letGo) this.#settle(this.#entries.get(id));
    for (const id of writes.withdrawn) this.#withdrawn(id);
    if (writes.letGo.length > 0 || writes.added.some(({ isHeld }) => !isHeld)) onWritten();
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
    const row: WebhookRow = { kind: 'message', id, hookId, number, body, isOnce };
    void this.#quietly(this.#options.states.save(TABLE, rowIdOf(id), row), 'saving a message of a webhook').then(
      entry.onSaved,
    );
  }

  #unkeep(entry: Entry): void {
    if (!entry.isKept) return;
    entry.isKept = false;
    void this.#quietly(this.#options.states.remove(TABLE, rowIdOf(entry.id)), 'removing a message of a webhook');
  }

  #drop(hookId: string, count = 1, news = count): void {
    this.#dropped.set(hookId, (this.#dropped.get(hookId) ?? 0) + count);
    if (news > 0) this.#options.onDropped(news);
    this.#isDue = true;
  }

  #retryLater(): void {
    this.#isDue = true;
    this.#stopRetry ??= this.#options.after(RETRY_MS, () => {
      this.#stopRetry = undefined;
      this.write();
    });
  }

  #quietly(written: Promise<void>, doing: string): Promise<void> {
    return written.catch((error: unknown) => this.#options.onError(error, doing));
  }
}
