import { type Lineage, lineageOfOrg } from '../core/audit/audit.ts';
import { type AgentKey, type OpId, parseAgentKey } from '../core/base/ids.ts';
import { Multimap } from '../core/base/lists.ts';
import { fail, ok, type Result } from '../core/base/result.ts';
import type { CommandOf, Replies } from '../core/commands.ts';
import type { Fault } from '../core/fault.ts';
import { orgInReach } from '../core/identity/access.ts';
import type { OpView, Signal, SignalMessage } from '../core/ops/op-view.ts';
import type { Bus, Membership } from '../ports/cluster.ts';
import type { Entry, LogRow } from '../ports/cluster-log.ts';
import type { Clock } from '../ports/ports.ts';
import type { SentSignal } from '../ports/sharing.ts';
import type { AppliedEverywhere } from './applied.ts';
import { proposed, type SharedLog } from './log.ts';
import { homeOf } from './run.ts';

/** The state of an operation after an order, as far as others are concerned; undefined: it goes on. */
const STATE_AFTER = { pause: 'paused', terminate: 'terminated', resume: undefined } as const;

/** The newest order to an operation, plain as it is stored. */
type Order = {
  readonly opId: OpId;
  /** Undefined: nobody knew whose it is, as its gateway did not answer. */
  readonly agent?: AgentKey;
  /** Null: whoever gave it sees all orgs, and did not say which it is about. */
  readonly orgId?: string | null;
  readonly signal: Signal;
  readonly sequence: number;
  /** The gateway that has carried it out, or does not answer. */
  readonly home: string;
  /** It is for that gateway alone: at others it is carried out already. */
  readonly isForHome?: true;
  readonly isAcknowledged?: boolean;
  readonly actor?: string;
  readonly atMs: number;
};
type Known = Order & { readonly id: string; readonly version: number };

/** Has the order carried out by the governor of this gateway: it is in the log already. */
export type CarryOut = (command: CommandOf<'control-op'>) => Promise<Replies['control-op']>;

export type SharedOrdersOptions = {
  readonly log: Pick<SharedLog, 'propose'>;
  readonly everywhere: Pick<AppliedEverywhere, 'pass'>;
  readonly membership: Membership;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly onError: (error: unknown, doing: string) => void;
};

export type Given = { readonly op: OpView; readonly unconfirmed: readonly string[] };
type Record = (lineage: Lineage, home: string) => Promise<Result<void, Fault>>;

/** Orders to operations whose gateway has ended are kept for a day. */
const KEPT_MS = 24 * 3_600_000;
const MAX_ORDERS_OF_ABSENT = 10_000;
/** Old rows that one look removes. */
const REMOVED_AT_ONCE = 500;
/** For longer the database is not waited for; where it is known to be away, it is only tried. */
const WRITE_WITHIN_MS = 700;
const TRY_WITHIN_MS = 50;
const FORGET_WITHIN_MS = 10_000;
/** Orders that the database could not take, in one message. */
const UNWRITTEN_IN_MESSAGE = 500;
const WRITE_AGAIN_MS = 1_000;

const idOf = (agent: AgentKey, opId: OpId): string => `${agent} ${opId}`;
const orgOf = ({ agent, orgId }: Order): string | null =>
  agent === undefined ? (orgId ?? null) : (parseAgentKey(agent)?.orgId ?? null);
/** Whether an order given with the one may be about an operation of the other. */
const mayBe = (one: string | null, other: string | null): boolean => one === null || other === null || one === other;

const AWAY = 'its gateway does not answer; this is what operators have ordered';
const GONE = 'its gateway has ended; this is what operators have ordered';

/**
 * The orders of operators, at all gateways: an operation that was paused or terminated at its home begins nowhere else,
 * also once its home has ended, and its agent gets the signal wherever it is connected. An order to an operation whose
 * home does not answer stands in the log, and whoever has the operation carries it out at that place.
 */
export class SharedOrders {
  readonly #options: SharedOrdersOptions;
  readonly #home: string;
  readonly #rows = new Map<string, Known>();
  readonly #byOp = new Multimap<OpId, string>();
  readonly #byAgent = new Multimap<AgentKey, string>();
  /** Orders that the database could not take yet. */
  readonly #unwritten = new Map<string, Order>();
  #retry: NodeJS.Timeout | undefined;
  #lastSequence = 0;
  #deliver: (agent: AgentKey, message: SignalMessage) => void = () => undefined;
  #carryOut: CarryOut | undefined;

  constructor(options: SharedOrdersOptions) {
    this.#options = options;
    this.#home = homeOf(options.membership.self);
    options.bus.onMessage((_, message) => {
      if (message.type === 'unwritten') for (const [id, order] of message.orders) this.#hold(id, order as Order);
    });
  }

  /** `deliver` is called for signals of other gateways. */
  follow(deliver: (agent: AgentKey, message: SignalMessage) => void, carryOut: CarryOut): void {
    this.#deliver = deliver;
    this.#carryOut = carryOut;
  }

  /** Orders to operations that nobody knew of. */
  get size(): number {
    return [...this.#rows.values()].filter(({ agent }) => agent === undefined).length;
  }

  stop(): void {
    clearTimeout(this.#retry);
  }

  /** Grows at all gateways together, and begins with the time: see `SignalBoxes`. */
  nextSequence(nowMs: number): number {
    this.#lastSequence = Math.max(this.#lastSequence + 1, Math.floor(nowMs));
    return this.#lastSequence;
  }

  /** Makes the entry for an order that this gateway has carried out. */
  entryOf({ agent, opId, signal }: SentSignal, sequence: number, nowMs: number): Entry {
    const body: Order = { agent, opId, signal, sequence, home: this.#home, atMs: nowMs };
    return { kind: 'orders', id: idOf(agent, opId), body };
  }

  /**
   * Tells the others what was carried out here. Resolves when all act by it, with the names of those that do not;
   * `database` where it cannot be written now: then it is written later, and stands where it has come over the bus.
   */
  async save(sent: SentSignal, sequence: number, nowMs: number): Promise<readonly string[]> {
    const entry = this.entryOf(sent, sequence, nowMs);
    const written = await proposed(this.#options.log, [entry], this.#patienceMs);
    if (written.ok) return this.#options.everywhere.pass(written.value);
    this.#keepUnwritten(entry.id, entry.body as Order);
    return this.#sendUnwritten();
  }

  get #patienceMs(): number {
    return this.#options.membership.isLeased ? WRITE_WITHIN_MS : TRY_WITHIN_MS;
  }

  #keepUnwritten(id: string, { opId, agent, orgId, signal, sequence, home, isAcknowledged, actor, atMs }: Order): void {
    const order = { opId, agent, orgId, signal, sequence, home, isAcknowledged, actor, atMs } as Order;
    this.#unwritten.set(id, order);
    this.#put(id, order, 0);
    this.#retry ??= setTimeout(() => {
      this.#retry = undefined;
      this.#writeAgain();
    }, WRITE_AGAIN_MS).unref();
  }

  #writeAgain(): void {
    for (const [id, body] of [...this.#unwritten].slice(0, UNWRITTEN_IN_MESSAGE)) {
      this.#unwritten.delete(id);
      void proposed(this.#options.log, [{ kind: 'orders', id, body }], FORGET_WITHIN_MS).then((written) => {
        if (!written.ok) this.#keepUnwritten(id, body);
      });
    }
    if (this.#unwritten.size > 0) this.#keepUnwritten(...[...this.#unwritten][0]!);
  }

  /** A bus that does not need the database makes orders hold everywhere while that is away. */
  #sendUnwritten(): readonly string[] {
    const { bus } = this.#options;
    const orders = [...this.#unwritten];
    for (let at = 0; at < orders.length; at += UNWRITTEN_IN_MESSAGE)
      bus.send('all', { type: 'unwritten', orders: orders.slice(at, at + UNWRITTEN_IN_MESSAGE) });
    return ['database'];
  }

  /** Another gateway could not write it: until the log says more, it stands. */
  #hold(id: string, order: Order): void {
    const known = this.#rows.get(id);
    if (known !== undefined && known.sequence >= order.sequence) return;
    this.#take(id, order, known?.version ?? 0);
  }

  /** The order could not be recorded, or its operation has left the registry. */
  forget(agent: AgentKey, opId: OpId): void {
    const id = idOf(agent, opId);
    const known = this.#rows.get(id);
    if (known?.home !== this.#home) return;
    this.#remove(known);
  }

  #remove({ id, version }: Known): void {
    this.#unwritten.delete(id);
    const entry: Entry = { kind: 'orders', id, body: null, upTo: version };
    void proposed(this.#options.log, [entry], FORGET_WITHIN_MS);
  }

  /** The state of another gateway's operation of the same agent and id; undefined: nobody has closed it. */
  closedElsewhere(agent: AgentKey, opId: OpId): 'paused' | 'terminated' | undefined {
    if (this.#rows.size === 0) return undefined;
    const orgId = parseAgentKey(agent)?.orgId ?? null;
    const meant = this.#ofOp(opId).filter((order) =>
      order.agent === undefined ? mayBe(order.orgId ?? null, orgId) : order.agent === agent,
    );
    const newest = newestOf(meant);
    return newest === undefined ? undefined : STATE_AFTER[newest.signal];
  }

  #ofOp(opId: OpId): readonly Known[] {
    return Array.from(this.#byOp.of(opId), (id) => this.#rows.get(id)!);
  }

  /** Signals of other gateways that the agent has not acknowledged. */
  pendingOf(agent: AgentKey): readonly SignalMessage[] {
    return Array.from(this.#byAgent.of(agent), (id) => this.#rows.get(id)!)
      .filter(({ home, isAcknowledged }) => home !== this.#home && isAcknowledged !== true)
      .map(messageOf);
  }

  /** The agent has seen the signal. False where no such signal is known. What is newer than that stays so. */
  acknowledge(agent: AgentKey, opId: OpId, sequence: number): boolean {
    const known = this.#rows.get(idOf(agent, opId));
    if (known?.sequence !== sequence) return false;
    if (known.isAcknowledged === true) return true;
    const { id, version, ...order } = known;
    const entry: Entry = { kind: 'orders', id, body: { ...order, isAcknowledged: true }, upTo: version };
    void proposed(this.#options.log, [entry], FORGET_WITHIN_MS);
    return true;
  }

  /**
   * An order to an operation that nobody has who answers. It stands for those that are `away`, and for what is known of
   * gateways that have ended. Undefined: there is neither. Faults: `invalid_transition`, `ambiguous`, `org_forbidden`,
   * `overloaded`, `store_unreachable`, and those of `record`.
   */
  async give(
    { principal, opId, orgId: asked, trigger }: CommandOf<'control-op'>,
    away: readonly string[],
    record: Record,
  ): Promise<Result<Given, Fault> | undefined> {
    if (trigger === 'complete') return undefined;
    const org = orgInReach(principal, asked);
    if (!org.ok) return org;
    const orgId = org.value ?? null;
    const known = this.#ofOp(opId).filter((order) => mayBe(orgOf(order), orgId));
    const targets = this.#targets(known, away, { opId, orgId });
    if (targets.length === 0) return undefined;
    if (this.#rows.size + targets.length > MAX_ORDERS_OF_ABSENT && known.length === 0) return TOO_MANY;
    const orgIds = new Set(known.flatMap((order) => orgOf(order) ?? []));
    if (orgIds.size > 1) return fail({ kind: 'ambiguous', opId, orgIds: [...orgIds] });
    if (newestOf(known)?.signal === 'terminate' && trigger !== 'terminate')
      return fail({ kind: 'invalid_transition', opId, from: 'terminated', trigger });
    const nowMs = this.#options.clock.nowMs();
    const sequence = this.nextSequence(nowMs);
    for (const { home } of targets) {
      const recorded = await record(lineageOfOrg(orgId), home);
      if (!recorded.ok) return recorded;
    }
    const entries = targets.map(({ id, ...target }): Entry => {
      const body: Order = { ...target, signal: trigger, sequence, atMs: nowMs, actor: principal.subject };
      return { kind: 'orders', id, body };
    });
    const written = await proposed(this.#options.log, entries, this.#patienceMs);
    if (!written.ok) return written.fault.kind === 'refused' ? TOO_MANY : fail(written.fault);
    const unconfirmed = await this.#options.everywhere.pass(written.value);
    const first = targets.at(-1);
    const op = viewOf({ ...first!, signal: trigger, atMs: nowMs }, away.length > 0 ? AWAY : GONE, nowMs);
    return ok({ op, unconfirmed });
  }

  /**
   * Leaves an order for each of these gateways, which may have a part of an operation that others have. Resolves with
   * `database` where it cannot be written.
   */
  async leave(
    { principal, opId, orgId: asked, trigger }: CommandOf<'control-op'>,
    away: readonly string[],
  ): Promise<readonly string[]> {
    const orgId = asked ?? principal.orgId ?? null;
    if (trigger === 'complete' || away.length === 0 || this.#rows.size + away.length > MAX_ORDERS_OF_ABSENT) return [];
    const nowMs = this.#options.clock.nowMs();
    const base = { opId, orgId, signal: trigger, isForHome: true, actor: principal.subject, atMs: nowMs } as const;
    const entries = away.map((home): Entry => {
      const body: Order = { ...base, home, sequence: this.nextSequence(nowMs) };
      return { kind: 'orders', id: `? ${orgId ?? ''} ${opId} ${home}`, body };
    });
    const written = await proposed(this.#options.log, entries, this.#patienceMs);
    return written.ok ? [] : ['database'];
  }

  /** Each order that is known, and one for whoever has an operation that is not. */
  #targets(
    known: readonly Known[],
    away: readonly string[],
    { opId, orgId }: { readonly opId: OpId; readonly orgId: string | null },
  ): readonly (Pick<Order, 'opId' | 'orgId' | 'agent' | 'home' | 'isForHome'> & { readonly id: string })[] {
    const mine = known.map(({ id, agent, orgId: ofOrg, home, isForHome }) => ({
      ...{ id, opId, home },
      ...(isForHome && { isForHome }),
      ...(agent !== undefined && { agent }),
      ...(ofOrg !== undefined && { orgId: ofOrg }),
    }));
    const id = `? ${orgId ?? ''} ${opId}`;
    if (away.length === 0 || mine.some((each) => each.id === id)) return mine;
    return [...mine, { id, opId, orgId, home: away[0] ?? this.#home }];
  }

  /** Applies an order of the log. Whoever has an operation that it names carries it out before it returns. */
  apply({ id, body }: Entry, { seq }: LogRow, isOwn: boolean): void {
    const order = body as Order | null;
    if (order === null) return this.#drop(id);
    const unwritten = this.#unwritten.get(id);
    if (unwritten !== undefined && unwritten.sequence > order.sequence) return;
    this.#unwritten.delete(id);
    this.#take(id, order, seq);
    if (order.agent === undefined || (!isOwn && order.actor !== undefined)) this.#obey(order);
  }

  restore(states: readonly (Entry & { readonly version: number })[]): void {
    for (const id of [...this.#rows.keys()]) if (!this.#unwritten.has(id)) this.#drop(id);
    for (const { kind, id, body, version } of states) if (kind === 'orders') this.#take(id, body as Order, version);
    for (const order of [...this.#rows.values()])
      if (order.agent === undefined && !this.#isOutdated(order)) this.#obey(order);
  }

  /** A newer one is about all that this one may be about. */
  #isOutdated(order: Known): boolean {
    return this.#ofOp(order.opId).some(
      (each) => newestOf([order, each]) === each && each !== order && mayBe(orgOf(each), orgOf(order)),
    );
  }

  #obey({ opId, signal: trigger, actor: subject, agent, orgId, home, isForHome }: Order): void {
    if (subject === undefined || this.#carryOut === undefined || (isForHome && home !== this.#home)) return;
    const ofOrg = agent === undefined ? (orgId ?? null) : (parseAgentKey(agent)?.orgId ?? null);
    const principal = { subject, scopes: ['write'], orgId: ofOrg } as const;
    this.#carryOut({ type: 'control-op', principal, opId, trigger }).catch((error: unknown) =>
      this.#options.onError(error, 'carrying out an order of the log'),
    );
  }

  #take(id: string, order: Order, version: number): void {
    this.#lastSequence = Math.max(this.#lastSequence, order.sequence);
    const before = this.#rows.get(id);
    this.#put(id, order, version);
    const { agent, home, isAcknowledged = false } = order;
    const isNew = before === undefined || before.sequence < order.sequence;
    if (isNew && agent !== undefined && home !== this.#home && !isAcknowledged) this.#deliver(agent, messageOf(order));
  }

  /** Removes old orders to operations of runs that have ended. */
  tidy(): void {
    const lostMs = this.#options.clock.nowMs() - KEPT_MS;
    const members = new Set(this.#options.membership.others().map(({ run }) => homeOf(run)));
    let removed = 0;
    for (const known of [...this.#rows.values()]) {
      // Its gateway could not write it, and has ended before it could.
      if (known.version === 0 && known.home !== this.#home && !members.has(known.home))
        this.#keepUnwritten(known.id, known);
      if (known.atMs > lostMs || known.home === this.#home || members.has(known.home)) continue;
      this.#remove(known);
      removed += 1;
      if (removed === REMOVED_AT_ONCE) return;
    }
  }

  #put(id: string, order: Order, version: number): void {
    this.#rows.set(id, { ...order, id, version });
    this.#byOp.add(order.opId, id);
    if (order.agent !== undefined) this.#byAgent.add(order.agent, id);
  }

  #drop(id: string): void {
    const order = this.#rows.get(id);
    if (order === undefined) return;
    this.#rows.delete(id);
    this.#byOp.delete(order.opId, id);
    if (order.agent !== undefined) this.#byAgent.delete(order.agent, id);
  }
}

const TOO_MANY: Result<never, Fault> = fail({
  kind: 'overloaded',
  retryAfterSecs: 1,
  what: 'the number of orders to operations of gateways that do not answer',
});

const newestOf = (orders: readonly Known[]): Known | undefined =>
  orders.toSorted((one, other) => one.version - other.version || one.sequence - other.sequence).at(-1);

const messageOf = ({ opId, signal, sequence }: Order): SignalMessage => ({ opId, signal, sequence });

/** Little more is known of an operation whose gateway cannot be asked than what was ordered; `reason` says why. */
const viewOf = (
  { opId, signal, atMs, home, agent, orgId }: Pick<Order, 'opId' | 'signal' | 'atMs' | 'home' | 'agent' | 'orgId'>,
  reason: string,
  nowMs: number,
): OpView => ({
  opId,
  state: STATE_AFTER[signal] ?? 'running',
  registeredAtMs: atMs,
  updatedAtMs: nowMs,
  agent: (agent && parseAgentKey(agent)) ?? { orgId: orgId ?? '', teamId: '', agentId: '' },
  action: undefined,
  resource: undefined,
  policy: undefined,
  ruleId: undefined,
  reason,
  estimatedMicroUsd: 0,
  spentMicroUsd: 0,
  approvalId: undefined,
  error: undefined,
  ended: signal === 'terminate' ? 'terminated' : undefined,
  acknowledgedAtMs: undefined,
  home,
});
