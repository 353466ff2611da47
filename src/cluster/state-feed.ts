import { fail, ok, type Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import type { Barrier, Bus, SharedStates, StateKind, StateRow, StateWrite, Unconfirmed } from '../ports/cluster.ts';
import { Refused } from '../ports/ports.ts';
import { oneAfterAnother } from './replicas.ts';

export type StateFeedOptions = {
  readonly kind: Exclude<StateKind, 'orders'>;
  readonly store: Omit<SharedStates, 'put'>;
  readonly bus: Bus;
  readonly barrier: Barrier;
  /** Whether a change is answered only once every gateway acts by it. */
  readonly isAwaited: (body: unknown) => boolean;
  readonly onError: (error: unknown, doing: string) => void;
};

/** How the gateway follows. Both are synchronous: what is decided in a turn is decided by what was adopted in it. */
export type StateFollower = {
  /** Takes over rows that another gateway has written; `body` undefined: it is gone. */
  readonly adopt: (rows: readonly Pick<StateRow, 'id' | 'body'>[]) => void;
  /** Does the work of a turn of this key. */
  readonly within: (key: string, work: () => void) => void;
};

type Answer<T> = Result<T, Fault> & Unconfirmed;
type Turn = {
  readonly key: string;
  readonly writes: Map<string, StateWrite>;
  readonly committed: Promise<readonly string[]>;
};
/** `begin` is called in the turn, `refuse` where there is none. */
type Waiting = { readonly begin: (nowMs: number) => void; readonly refuse: (fault: Fault) => void };

/** Connections that turns take of the pool. */
const TURNS_AT_ONCE = 4;
/** What one transaction takes in. */
const WAITING_AT_ONCE = 200;
const MAX_WAITING = 10_000;
const OVERLOADED: Fault = {
  kind: 'overloaded',
  retryAfterSecs: 1,
  what: 'the number of requests that wait for the database',
};

/**
 * What people have decided at any gateway, in this one's registry. A change is decided in a turn: while no other
 * gateway changes rows of the same key, by their newest state, and answered once it is committed and acted by
 * everywhere. What waits for a turn of one key is decided together, in one transaction.
 */
export class StateFeed {
  readonly #options: StateFeedOptions;
  readonly #loaded: readonly StateRow[];
  /** Of the rows as they are known here. */
  readonly #versions = new Map<string, number>();
  /** The latest that this gateway has written of a row. */
  readonly #own = new Map<string, number>();
  readonly #queues = new Map<string, Waiting[]>();
  readonly #due: string[] = [];
  #follower: StateFollower | undefined;
  #waiting = 0;
  #running = 0;
  #turn: Turn | undefined;

  /** `loaded`: every row, to begin with. */
  constructor(options: StateFeedOptions, loaded: readonly StateRow[]) {
    this.#options = options;
    this.#loaded = loaded;
    for (const { id, version } of loaded) this.#versions.set(id, version);
  }

  *load(): Iterable<{ readonly id: string; readonly row: unknown }> {
    for (const { id, body } of this.#loaded) yield { id, row: body };
  }

  /** Call it once the registry has what was loaded. */
  follow(follower: StateFollower): void {
    this.#follower = follower;
  }

  /** Whether a turn of this key has been decided and is not committed yet, or is about to be. */
  isBusy(key: string): boolean {
    return this.#queues.has(key);
  }

  /**
   * Calls `apply` in a turn of the key, with the time of the database. What it saves meanwhile is written in that
   * turn. Faults: `store_unreachable`; `overloaded`.
   */
  inTurn<T>(key: string, apply: (nowMs: number) => Promise<Answer<T>>): Promise<Answer<T>> {
    return new Promise((resolve) => {
      this.#wait(key, {
        begin: (nowMs) => resolve(apply(nowMs)),
        refuse: (fault) => resolve(fail(fault)),
      });
    });
  }

  /** Part of the turn that is being decided; outside of one, it takes back what this gateway has written last. */
  save(id: string, body: unknown): Promise<readonly string[]> {
    return this.#write(id, body);
  }

  remove(id: string): Promise<readonly string[]> {
    return this.#write(id, undefined);
  }

  /** Looks for a row that is not known here yet, and adopts it. */
  async find(id: string): Promise<Result<void, Fault>> {
    const found = await this.#options.store.find(this.#options.kind, id);
    if (!found.ok) return found;
    if (found.value !== undefined) this.#adopt([found.value]);
    return ok(undefined);
  }

  /** Takes over what others have changed. Resolves when a reading that began after the call has ended. */
  readonly refresh = oneAfterAnother(() => this.#refresh());

  async #refresh(): Promise<Result<void, Fault>> {
    const read = await this.#options.store.changes(this.#options.kind);
    if (!read.ok || this.#follower === undefined) return read.ok ? ok(undefined) : read;
    const { rows, isWhole, seen } = read.value;
    this.#adopt(rows);
    if (isWhole) this.#dropOthers(new Set(rows.map(({ id }) => id)));
    seen();
    return ok(undefined);
  }

  /** Rows that are gone for longer than anybody remembers. */
  #dropOthers(ids: ReadonlySet<string>): void {
    const gone = [...this.#versions.keys()].filter((id) => !ids.has(id));
    for (const id of gone) this.#versions.delete(id);
    if (gone.length > 0) this.#follower?.adopt(gone.map((id) => ({ id, body: undefined })));
  }

  #adopt(rows: readonly StateRow[]): void {
    const newer = rows.filter(({ id, version }) => version > (this.#versions.get(id) ?? 0));
    if (newer.length === 0) return;
    for (const row of newer) this.#note(row);
    this.#follower?.adopt(newer);
  }

  #write(id: string, body: unknown): Promise<readonly string[]> {
    const turn = this.#turn;
    if (turn === undefined) return this.#takeBack(id, body);
    turn.writes.set(id, { id, key: turn.key, body });
    return turn.committed;
  }

  /**
   * What was written and could not be recorded. Where somebody else has changed it since, that stands; where it was not
   * written after all, it is as it was.
   */
  async #takeBack(id: string, body: unknown): Promise<readonly string[]> {
    const { kind, store } = this.#options;
    const own = this.#own.get(id);
    if (own === undefined) return [];
    const found = await store.find(kind, id);
    if (!found.ok) throw new Refused(found.fault);
    if (found.value?.version !== own) return [];
    const { key } = found.value;
    const written = await this.inTurn(key, async () => {
      if (this.#versions.get(id) !== own) return ok([]);
      return ok(await this.#write(id, body));
    });
    if (!written.ok) throw new Refused(written.fault);
    return written.value;
  }

  #wait(key: string, waiting: Waiting): void {
    if (this.#waiting >= MAX_WAITING) return waiting.refuse(OVERLOADED);
    this.#waiting += 1;
    const queue = this.#queues.get(key);
    if (queue !== undefined) return void queue.push(waiting);
    this.#queues.set(key, [waiting]);
    this.#due.push(key);
    this.#start();
  }

  #start(): void {
    while (this.#running < TURNS_AT_ONCE) {
      const key = this.#due.shift();
      if (key === undefined) return;
      this.#running += 1;
      void this.#serve(key).finally(() => {
        this.#running -= 1;
        this.#start();
      });
    }
  }

  /** One turn of the key; the next one waits in line behind other keys. Never rejects. */
  async #serve(key: string): Promise<void> {
    const waiting = this.#queues.get(key)?.splice(0, WAITING_AT_ONCE) ?? [];
    let hasBegun = false;
    const fault = await this.#take(key, (nowMs) => {
      hasBegun = true;
      for (const each of waiting) this.#begin(each, nowMs);
    });
    this.#waiting -= waiting.length;
    if (!hasBegun) for (const { refuse } of waiting) refuse(fault ?? { kind: 'internal' });
    // Whoever waits behind would meet the same.
    if (fault !== undefined) this.#refuseAll(fault);
    const left = this.#queues.get(key);
    if (left === undefined) return;
    if (left.length === 0) this.#queues.delete(key);
    else this.#due.push(key);
  }

  /** A defect met by one must not lose the others of its turn. */
  #begin({ begin, refuse }: Waiting, nowMs: number): void {
    try {
      begin(nowMs);
    } catch (error) {
      this.#options.onError(error, `deciding about ${this.#options.kind} of the cluster`);
      refuse({ kind: 'internal' });
    }
  }

  #refuseAll(fault: Fault): void {
    for (const key of this.#due.splice(0)) {
      const waiting = this.#queues.get(key) ?? [];
      this.#queues.delete(key);
      this.#waiting -= waiting.length;
      for (const { refuse } of waiting) refuse(fault);
    }
  }

  async #take(key: string, decide: (nowMs: number) => void): Promise<Fault | undefined> {
    const { kind, store, onError } = this.#options;
    let resolve: (names: Promise<readonly string[]>) => void = () => undefined;
    let reject: (refused: Refused) => void = () => undefined;
    const committed = new Promise<readonly string[]>((...settle) => {
      [resolve, reject] = settle;
    });
    committed.catch(() => undefined); // where nothing is written, nobody waits for it
    const turn: Turn = { key, writes: new Map(), committed };
    try {
      const written = await store.turn(kind, key, (rows, nowMs) => {
        this.#adopt(rows);
        this.#turn = turn;
        try {
          this.#follower?.within(key, () => decide(nowMs));
        } finally {
          this.#turn = undefined;
        }
        return [...turn.writes.values()];
      });
      if (!written.ok) {
        reject(new Refused(written.fault));
        return written.fault;
      }
      this.#noteOwn(written.value);
      resolve(this.#announced(written.value));
      return undefined;
    } catch (error) {
      onError(error, `writing ${kind} of the cluster`);
      reject(new Refused({ kind: 'internal' }));
      return { kind: 'internal' };
    }
  }

  #noteOwn(rows: readonly StateRow[]): void {
    for (const row of rows) {
      this.#note(row);
      if (row.body !== undefined) this.#own.set(row.id, row.version);
    }
  }

  #note({ id, version, body }: StateRow): void {
    this.#own.delete(id);
    if (body === undefined) this.#versions.delete(id);
    else this.#versions.set(id, version);
  }

  async #announced(rows: readonly StateRow[]): Promise<readonly string[]> {
    const { kind, barrier, bus, isAwaited } = this.#options;
    if (rows.length === 0) return [];
    if (rows.some(({ body }) => isAwaited(body))) return barrier.pass(kind);
    bus.send('all', { type: 'changed', topic: kind });
    return [];
  }
}
