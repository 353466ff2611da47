import { type AgentIdentity, type AgentKey, type OpId, parseAgentKey } from '../core/base/ids.ts';
import { Multimap } from '../core/base/lists.ts';
import { assert, fail, ok, type Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import type { OpView, Signal, SignalMessage } from '../core/views.ts';
import type { Barrier, Bus, Membership, SharedStates, StateRow, StateWrite } from '../ports/cluster.ts';
import { within } from '../system/clock.ts';
import { STATE_AFTER, viewOfOrdered } from './ordered.ts';
import { homeOf } from './run.ts';

/** The newest signal of an operation that an operator has touched, at whichever gateway it lives. */
type Control = {
  readonly agent: AgentKey;
  readonly opId: OpId;
  readonly signal: Signal;
  readonly sequence: number;
  readonly home: string;
  readonly isAcknowledged: boolean;
  readonly atMs: number;
};

export type SharedControlsOptions = {
  readonly store: Pick<SharedStates, 'put' | 'changes'>;
  readonly membership: Membership;
  readonly barrier: Barrier;
  readonly bus: Bus;
  readonly wallMs: () => number;
  readonly onError: (error: unknown, doing: string) => void;
};

type Sent = { readonly agent: AgentKey; readonly opId: OpId; readonly signal: Signal };

/** What stands of an operation whose gateway has ended is kept for a day. */
const KEPT_MS = 24 * 3_600_000;
const KIND = 'controls';
/** So many orders go with the message that there are some; of more, the others read in the database. */
const MOST_IN_MESSAGE = 20;
/** Of those that nobody can read there yet. */
const UNWRITTEN_IN_MESSAGE = 500;
/** Rows of one statement; what is more is written by the next ones. */
const WRITTEN_AT_ONCE = 1_000;
/** Old rows that one reading removes. */
const REMOVED_AT_ONCE = 500;
/** For longer the database is not waited for; where it is known to be away, it is only tried. */
const WRITE_WITHIN_MS = 700;
const TRY_WITHIN_MS = 50;

const idOf = ({ agent, opId }: Pick<Control, 'agent' | 'opId'>): string => `${agent} ${opId}`;
const GONE = 'its gateway has ended; this is what operators have ordered';

/**
 * The orders of operators, at all gateways: an operation that was paused or terminated at its home begins nowhere else,
 * also once its home has ended, and its agent gets the signal wherever it is connected.
 */
export class SharedControls {
  readonly #options: SharedControlsOptions;
  readonly #home: string;
  readonly #rows = new Map<string, Control>();
  readonly #byAgent = new Multimap<AgentKey, string>();
  /** To be written: undefined removes. */
  #waiting = new Map<string, Control | undefined>();
  /** Of those, the orders that no other gateway has been sent. */
  readonly #unsent = new Set<string>();
  #writing: Promise<boolean> = Promise.resolve(true);
  #next: Promise<readonly string[]> | undefined;
  #lastSequence = 0;
  #deliver: (agent: AgentKey, message: SignalMessage) => void = () => undefined;
  /** Known from a message, and not yet from the table, where they are to be. */
  readonly #hearsay = new Set<string>();
  /** Likewise of other gateways, which could not write them. */
  readonly #unwritten = new Map<string, Control>();

  constructor(options: SharedControlsOptions) {
    this.#options = options;
    this.#home = homeOf(options.membership.self);
  }

  /** `deliver` is called for signals of other gateways. */
  follow(deliver: (agent: AgentKey, message: SignalMessage) => void): void {
    this.#deliver = deliver;
  }

  get size(): number {
    return this.#rows.size;
  }

  /** Grows at all gateways together, and begins with the time: see `SignalBoxes`. */
  nextSequence(nowMs: number): number {
    this.#lastSequence = Math.max(this.#lastSequence + 1, Math.floor(nowMs));
    return this.#lastSequence;
  }

  /**
   * Resolves when every gateway acts by it, with the names of those that do not; `database` where it cannot be written
   * now: then it is written later, and stands where it has come over the bus. Never rejects: it stands at its home.
   */
  save(sent: Sent, sequence: number, nowMs: number): Promise<readonly string[]> {
    const { agent, opId, signal } = sent;
    const control = { agent, opId, signal, sequence, home: this.#home, isAcknowledged: false, atMs: nowMs };
    this.#put(control);
    return this.#write(idOf(control), control);
  }

  /** The order could not be recorded, or its operation has left the registry. */
  forget(agent: AgentKey, opId: OpId): void {
    const id = idOf({ agent, opId });
    if (this.#rows.get(id)?.home !== this.#home) return;
    this.#drop(id);
    void this.#write(id, undefined);
  }

  /** What an operation of another gateway is, of the same agent and id; undefined: nobody has closed it. */
  closedElsewhere(agent: AgentKey, opId: OpId): 'paused' | 'terminated' | undefined {
    if (this.#rows.size === 0) return undefined;
    const control = this.#rows.get(idOf({ agent, opId }));
    return control === undefined || control.home === this.#home ? undefined : STATE_AFTER[control.signal];
  }

  /** The newest order to an operation of this id that was carried out here; 0: none. */
  carriedOut(opId: OpId, orgId: string | null): number {
    return [...this.#rows.values()]
      .filter((each) => each.opId === opId && each.home === this.#home)
      .filter(({ agent }) => orgId === null || parseAgentKey(agent)?.orgId === orgId)
      .reduce((newest, { sequence }) => Math.max(newest, sequence), 0);
  }

  /** Signals of other gateways that the agent has not acknowledged. */
  pendingOf(agent: AgentKey): readonly SignalMessage[] {
    return Array.from(this.#byAgent.of(agent), (id) => this.#rows.get(id)!)
      .filter(({ home, isAcknowledged }) => home !== this.#home && !isAcknowledged)
      .map(messageOf);
  }

  /** The agent has seen the signal. False where no such signal is known. */
  acknowledge(agent: AgentKey, opId: OpId, sequence: number): boolean {
    const id = idOf({ agent, opId });
    const control = this.#rows.get(id);
    if (control?.sequence !== sequence) return false;
    if (control.isAcknowledged) return true;
    this.#put({ ...control, isAcknowledged: true });
    void this.#write(id, { ...control, isAcknowledged: true });
    return true;
  }

  /**
   * An order to operations whose gateway has ended: they are what their records say, and resuming forgets these. It
   * holds for all of this id within one org. What it changes is recorded first. Undefined where nobody has touched one,
   * or its gateway may still decide. Faults: `ambiguous`, and those of `record`.
   */
  async order({ opId, orgId, signal, record }: OrderToGone): Promise<Result<Ordered, Fault> | undefined> {
    const gone = this.#gone(opId, orgId).filter((each) => each.signal !== 'terminate' || signal === 'terminate');
    const [first] = gone;
    if (first === undefined) return undefined;
    const orgIds = new Set(gone.map(({ agent }) => identityOf(agent).orgId));
    if (orgIds.size > 1) return fail({ kind: 'ambiguous', opId, orgIds: [...orgIds] });
    const changed = gone.filter((each) => each.signal !== 'terminate');
    for (const { agent, home } of changed) {
      const recorded = await record(identityOf(agent), home);
      if (!recorded.ok) return recorded;
    }
    const names = await Promise.all(changed.map((control) => this.#change(control, signal)));
    return ok({
      op: viewOfOrdered({ ...first, signal }, identityOf(first.agent), GONE, this.#options.wallMs()),
      unconfirmed: [...new Set(names.flat())],
    });
  }

  #gone(opId: OpId, orgId: string | undefined): readonly Control[] {
    const members = new Set(this.#options.membership.others().map(({ run }) => homeOf(run)));
    return [...this.#rows.values()].filter(
      (each) =>
        each.opId === opId &&
        each.home !== this.#home &&
        !members.has(each.home) &&
        (orgId === undefined || orgId === identityOf(each.agent).orgId),
    );
  }

  #change(control: Control, signal: Signal): Promise<readonly string[]> {
    const id = idOf(control);
    if (signal === 'resume') {
      this.#drop(id);
      return this.#write(id, undefined);
    }
    const next = { ...control, signal, sequence: this.nextSequence(this.#options.wallMs()), isAcknowledged: false };
    this.#put(next);
    this.#deliver(control.agent, messageOf(next));
    return this.#write(id, next);
  }

  /**
   * Takes over what others have ordered. `sent`: orders that a message says are written, or `unwritten`: those that its
   * sender could not write.
   */
  async refresh(sent?: unknown): Promise<Result<void, Fault>> {
    if (Array.isArray(sent)) return this.#believe(sent as readonly Control[]);
    const { unwritten } = Object(sent) as { readonly unwritten?: readonly Control[] };
    if (unwritten !== undefined) return this.#hold(unwritten);
    if (this.#waiting.size > 0) void this.#flushed(); // what the database could not take before
    const heard = [...this.#hearsay];
    const read = await this.#options.store.changes(KIND);
    if (!read.ok) return read;
    const { rows, isWhole, seen } = read.value;
    if (isWhole) {
      const known = new Set(rows.map(({ id }) => id));
      for (const id of [...this.#rows.keys()])
        if (!known.has(id) && !this.#waiting.has(id) && !this.#unwritten.has(id)) this.#drop(id);
    }
    for (const row of rows) this.#adopt(row);
    // A message that was late is about a row that has been read before, and removed since.
    for (const id of heard) if (this.#hearsay.delete(id)) this.#drop(id);
    seen();
    this.#tidy();
    return ok(undefined);
  }

  /** The signal need not wait for a query. */
  #believe(sent: readonly Control[]): Result<void, Fault> {
    for (const body of sent) {
      const id = idOf(body);
      const before = this.#rows.get(id);
      if (before !== undefined && before.sequence >= body.sequence) continue;
      this.#adopt({ id, key: id, body, version: 0 });
      if (before === undefined) this.#hearsay.add(id);
    }
    this.refresh().catch((error: unknown) => this.#options.onError(error, 'reading orders to operations'));
    return ok(undefined);
  }

  /** The database may not be reached from here either, and cannot say more. */
  #hold(orders: readonly Control[]): Result<void, Fault> {
    for (const control of orders) {
      const id = idOf(control);
      const waiting = this.#waiting.get(id);
      if (this.#waiting.has(id) && (waiting === undefined || waiting.sequence >= control.sequence)) continue;
      // Its gateway has ended, and two others have been asked: the later order counts.
      this.#waiting.delete(id);
      this.#hearsay.delete(id);
      this.#unwritten.set(id, control);
      this.#take(id, control);
    }
    return ok(undefined);
  }

  #adopt({ id, body }: StateRow): void {
    this.#hearsay.delete(id);
    const control = body as Control | undefined;
    const unwritten = this.#unwritten.get(id)?.sequence ?? 0;
    if (control === undefined || control.sequence >= unwritten) this.#unwritten.delete(id);
    if (this.#waiting.has(id)) return; // it is newer here
    if (control === undefined) return this.#drop(id);
    this.#take(id, control);
  }

  #take(id: string, control: Control): void {
    this.#lastSequence = Math.max(this.#lastSequence, control.sequence);
    const before = this.#rows.get(id);
    if (before !== undefined && before.sequence > control.sequence) return;
    this.#put(control);
    const isNew = before?.sequence !== control.sequence;
    if (isNew && control.home !== this.#home && !control.isAcknowledged)
      this.#deliver(control.agent, messageOf(control));
  }

  /** Of runs that have ended, whoever notices first. */
  #tidy(): void {
    const lostMs = this.#options.wallMs() - KEPT_MS;
    const members = new Set(this.#options.membership.others().map(({ run }) => homeOf(run)));
    let removed = 0;
    for (const [id, { home, atMs }] of this.#rows) {
      if (atMs > lostMs || home === this.#home || members.has(home)) continue;
      removed += 1;
      if (removed > REMOVED_AT_ONCE) break;
      this.#drop(id);
      void this.#write(id, undefined);
    }
    // They have ended before they could write them.
    for (const [id, control] of this.#unwritten) {
      if (members.has(control.home)) continue;
      this.#unwritten.delete(id);
      void this.#write(id, control);
    }
  }

  #put(control: Control): void {
    const id = idOf(control);
    this.#rows.set(id, control);
    this.#byAgent.add(control.agent, id);
  }

  #drop(id: string): void {
    const control = this.#rows.get(id);
    if (control === undefined) return;
    this.#rows.delete(id);
    this.#byAgent.delete(control.agent, id);
  }

  #write(id: string, control: Control | undefined): Promise<readonly string[]> {
    this.#waiting.set(id, control);
    if (control?.isAcknowledged === false) this.#unsent.add(id);
    return this.#flushed();
  }

  get #patienceMs(): number {
    return this.#options.membership.isLeased ? WRITE_WITHIN_MS : TRY_WITHIN_MS;
  }

  /** What is ordered while a write is under way makes up the next one. Never rejects. */
  #flushed(): Promise<readonly string[]> {
    this.#next ??= within(this.#patienceMs, this.#writing).then((isOver) => {
      this.#next = undefined;
      return isOver === undefined ? this.#sendUnwritten() : this.#flush();
    });
    return this.#next;
  }

  async #flush(): Promise<readonly string[]> {
    const { barrier, bus } = this.#options;
    const waiting = new Map(this.#waiting);
    if (waiting.size === 0) return [];
    this.#writing = this.#written(waiting);
    if ((await within(this.#patienceMs, this.#writing)) !== true) return this.#sendUnwritten();
    for (const id of waiting.keys()) this.#unsent.delete(id);
    const ordered = [...waiting.values()].filter((control) => control?.isAcknowledged === false);
    if (ordered.length > 0) return barrier.pass(KIND, ordered.length > MOST_IN_MESSAGE ? undefined : ordered);
    bus.send('all', { type: 'changed', topic: KIND });
    return [];
  }

  async #written(waiting: ReadonlyMap<string, Control | undefined>): Promise<boolean> {
    const { store, onError } = this.#options;
    try {
      const writes = Array.from(waiting, ([id, body]): StateWrite => ({ id, key: id, body }));
      for (let at = 0; at < writes.length; at += WRITTEN_AT_ONCE) {
        const written = await store.put(KIND, writes.slice(at, at + WRITTEN_AT_ONCE));
        if (!written.ok) return false;
      }
      for (const [id, control] of waiting) if (this.#waiting.get(id) === control) this.#waiting.delete(id);
      return true;
    } catch (error) {
      onError(error, 'writing orders to operations to the database');
      return false;
    }
  }

  /** Where the bus does not need the database, orders hold everywhere while that is away. */
  async #sendUnwritten(): Promise<readonly string[]> {
    const { barrier, bus } = this.#options;
    if (!bus.isConnected) return ['database'];
    const orders = Array.from(this.#unsent, (id) => this.#waiting.get(id)).filter((control) => control !== undefined);
    this.#unsent.clear();
    const passing: Promise<readonly string[]>[] = [];
    for (let at = 0; at < orders.length; at += UNWRITTEN_IN_MESSAGE)
      passing.push(barrier.pass(KIND, { unwritten: orders.slice(at, at + UNWRITTEN_IN_MESSAGE) }));
    return [...new Set(['database', ...(await Promise.all(passing)).flat()])];
  }
}

export type OrderToGone = {
  readonly opId: OpId;
  /** Undefined: whichever org has one. */
  readonly orgId: string | undefined;
  readonly signal: Signal;
  /** Called for each operation that the order changes. */
  readonly record: (agent: AgentIdentity, home: string) => Promise<Result<void, Fault>>;
};
export type Ordered = { readonly op: OpView; readonly unconfirmed: readonly string[] };

const messageOf = ({ opId, signal, sequence }: Control): SignalMessage => ({ opId, signal, sequence });

function identityOf(agent: AgentKey): AgentIdentity {
  const identity = parseAgentKey(agent);
  assert(identity !== undefined, 'what was written of an agent has its key');
  return identity;
}
