import { orgInReach } from '../core/access.ts';
import { type Lineage, lineageOfOrg } from '../core/audit/audit.ts';
import { type AgentKey, type OpId, parseAgentKey } from '../core/base/ids.ts';
import { Multimap } from '../core/base/lists.ts';
import { fail, ok, type Result } from '../core/base/result.ts';
import type { CommandOf, Replies } from '../core/commands.ts';
import type { Fault } from '../core/fault.ts';
import type { OpView, Signal } from '../core/views.ts';
import type { Barrier, Membership, SharedStates, StateRow, StateWrite } from '../ports/cluster.ts';
import { STATE_AFTER, viewOfOrdered } from './ordered.ts';
import { homeOf } from './run.ts';

/** What an operator has ordered while the gateway of the operation did not answer. */
type Order = {
  readonly home: string;
  readonly opId: OpId;
  /** Null: whoever gave it sees all orgs, and did not say which it is about. */
  readonly orgId: string | null;
  readonly signal: Signal;
  readonly actor: string;
  readonly sequence: number;
  readonly atMs: number;
};

/** Has the order carried out by the governor of this gateway, before it returns; resolves with what became of it. */
export type CarryOut = (command: CommandOf<'control-op'>) => Promise<Replies['control-op']>;

export type WaitingOrdersOptions = {
  readonly store: Pick<SharedStates, 'turn' | 'changes'>;
  readonly membership: Membership;
  readonly barrier: Barrier;
  readonly wallMs: () => number;
  /** Numbers that grow at all gateways together: see `SharedControls`. */
  readonly nextSequence: (nowMs: number) => number;
  /** The newest order to this operation that this gateway has carried out as its home; 0: none. */
  readonly carriedOut: (opId: OpId, orgId: string | null) => number;
  readonly warn: (message: string, fields: object) => void;
  readonly onError: (error: unknown, doing: string) => void;
};

export type Given = { readonly op: OpView; readonly unconfirmed: readonly string[] };

const KIND = 'orders';
/** Of a gateway that has ended, and will never carry it out. */
const KEPT_MS = 24 * 3_600_000;
/** One that is still away will have ended by then. */
const MAX_WAITING = 10_000;

const idOf = ({ home, orgId, opId }: Pick<Order, 'home' | 'orgId' | 'opId'>): string =>
  `${home} ${orgId ?? ''} ${opId}`;
/** Whether an order given with the one may be about an operation of the other. */
const mayBe = (one: string | null, other: string | null): boolean => one === null || other === null || one === other;
const AWAY = 'its gateway does not answer; this is what operators have ordered';

const TOO_MANY: Result<never, Fault> = fail({
  kind: 'overloaded',
  retryAfterSecs: 1,
  what: 'the number of orders that wait for gateways which do not answer',
});

/**
 * Orders to operations whose gateway does not answer: it may be stopped, or cut off, and go on later. They are written
 * to the database, hold at all others from then on, and are carried out by that gateway before it serves again.
 */
export class WaitingOrders {
  readonly #options: WaitingOrdersOptions;
  readonly #home: string;
  readonly #rows = new Map<string, Order>();
  readonly #byOp = new Multimap<OpId, string>();
  /** Carried out here, and not taken off the table yet. */
  readonly #done = new Set<string>();
  #carryOut: CarryOut | undefined;

  constructor(options: WaitingOrdersOptions) {
    this.#options = options;
    this.#home = homeOf(options.membership.self);
  }

  follow(carryOut: CarryOut): void {
    this.#carryOut = carryOut;
  }

  get size(): number {
    return this.#rows.size;
  }

  /** What an operation is that lives at a gateway which did not answer when it was ordered. */
  closedElsewhere(agent: AgentKey, opId: OpId): 'paused' | 'terminated' | undefined {
    if (this.#rows.size === 0) return undefined;
    const orgId = parseAgentKey(agent)?.orgId ?? null;
    const states = this.#ofOthers(opId, orgId).map(({ signal }) => STATE_AFTER[signal]);
    return states.includes('terminated') ? 'terminated' : states.find((state) => state !== undefined);
  }

  /**
   * Leaves the order for these gateways, and for those that have ended since they were left one, once it is recorded.
   * Undefined: there is nobody to leave it for. Resolves when all that answer act by it, with the names of those that
   * do not. Faults: `invalid_transition`, `org_forbidden`, `overloaded`, `store_unreachable`, and those of `record`.
   */
  async give(
    command: CommandOf<'control-op'>,
    away: readonly string[],
    record: (lineage: Lineage, home: string) => Promise<Result<void, Fault>>,
  ): Promise<Result<Given, Fault> | undefined> {
    const { principal, opId, trigger } = command;
    if (trigger === 'complete') return undefined;
    const org = orgInReach(principal, command.orgId);
    if (!org.ok) return org;
    const orgId = org.value ?? null;
    const homes = new Set([...away, ...this.#leftFor(opId, orgId)]);
    if (homes.size === 0) return undefined;
    if (this.#rows.size + homes.size > MAX_WAITING) return TOO_MANY;
    const nowMs = this.#options.wallMs();
    const sequence = this.#options.nextSequence(nowMs);
    const orders = Array.from(homes, (home) => ({
      ...{ home, opId, orgId, signal: trigger, actor: principal.subject },
      ...{ sequence, atMs: nowMs },
    }));
    for (const order of orders) {
      const before = this.#rows.get(idOf(order));
      if (before?.signal === 'terminate' && trigger !== 'terminate')
        return fail({ kind: 'invalid_transition', opId, from: 'terminated', trigger });
    }
    for (const { home } of orders) {
      const recorded = await record(lineageOfOrg(orgId), home);
      if (!recorded.ok) return recorded;
    }
    const written = await this.#write(orders.map((order) => ({ id: idOf(order), key: idOf(order), body: order })));
    if (!written.ok) return written;
    for (const order of orders) this.#put(order);
    const names = await this.#options.barrier.pass('controls');
    const nobody = [...homes].flatMap((home) => this.#nameOf(home) ?? []);
    const agent = { orgId: orgId ?? '', teamId: '', agentId: '' };
    const op = viewOfOrdered(orders[0]!, agent, AWAY, nowMs);
    return ok({ op, unconfirmed: [...new Set([...names, ...nobody])] });
  }

  /** Gateways that have ended since an order was left for them: what is left of the operation is that order. */
  #leftFor(opId: OpId, orgId: string | null): readonly string[] {
    return this.#ofOthers(opId, orgId).flatMap(({ home }) => (this.#nameOf(home) === undefined ? [home] : []));
  }

  #ofOthers(opId: OpId, orgId: string | null): readonly Order[] {
    return Array.from(this.#byOp.of(opId), (id) => this.#rows.get(id)!).filter(
      (order) => order.home !== this.#home && mayBe(order.orgId, orgId),
    );
  }

  #nameOf(home: string): string | undefined {
    return this.#options.membership.others().find(({ run }) => homeOf(run) === home)?.name;
  }

  /** Takes over what others have left, and carries out what was left for this gateway before it resolves. */
  async refresh(): Promise<Result<void, Fault>> {
    const read = await this.#options.store.changes(KIND);
    if (!read.ok) return read;
    const { rows, isWhole, seen } = read.value;
    if (isWhole) {
      const known = new Set(rows.map(({ id }) => id));
      for (const id of [...this.#rows.keys()]) if (!known.has(id)) this.#drop(id);
    }
    for (const row of rows) this.#adopt(row);
    seen();
    for (const order of this.#rows.values()) if (order.home === this.#home) this.#obey(order);
    this.#tidy();
    return ok(undefined);
  }

  #adopt({ id, body }: StateRow): void {
    const order = body as Order | undefined;
    if (order === undefined) return this.#drop(id);
    const before = this.#rows.get(id);
    if (before === undefined || before.sequence <= order.sequence) this.#put(order);
  }

  /** The decision is made before it returns; the record of it, and the end of the order, follow. */
  #obey(order: Order): void {
    const { carriedOut, onError, warn } = this.#options;
    const key = `${idOf(order)} ${order.sequence}`;
    if (this.#done.has(key) || this.#carryOut === undefined) return;
    this.#done.add(key);
    const { opId, orgId, signal: trigger, actor: subject } = order;
    // A later order has come to this gateway directly.
    const isOld = carriedOut(opId, orgId) > order.sequence;
    const principal = { subject, scopes: ['write'], orgId } as const;
    const answered = isOld
      ? Promise.resolve(fail({ kind: 'not_found', what: 'an older order' } as const))
      : this.#carryOut({ type: 'control-op', principal, opId, trigger });
    void answered
      .then(async (reply) => {
        // What could not be recorded is tried again, with the next reading.
        if (!reply.ok && !FINAL.has(reply.fault.kind)) return void this.#done.delete(key);
        if (!reply.ok && reply.fault.kind === 'ambiguous')
          warn('an order that was left for this gateway does not say which org it is about', { opId, trigger });
        await this.#remove(order);
        this.#done.delete(key);
      })
      .catch((error: unknown) => onError(error, 'carrying out an order that waited for this gateway'));
  }

  /** Not if a newer one has taken its place meanwhile. */
  async #remove({ sequence, ...order }: Order): Promise<void> {
    const id = idOf(order);
    const written = await this.#options.store.turn(KIND, id, (rows) =>
      rows.some(({ body }) => (body as Order | undefined)?.sequence === sequence)
        ? [{ id, key: id, body: undefined }]
        : [],
    );
    if (written.ok && this.#rows.get(id)?.sequence === sequence) this.#drop(id);
  }

  async #write(writes: readonly StateWrite[]): Promise<Result<void, Fault>> {
    for (const write of writes) {
      const written = await this.#options.store.turn(KIND, write.key, () => [write]);
      if (!written.ok) return written;
    }
    return ok(undefined);
  }

  /** Of gateways that have ended, whoever notices first. */
  #tidy(): void {
    const lostMs = this.#options.wallMs() - KEPT_MS;
    for (const order of [...this.#rows.values()]) {
      if (order.atMs > lostMs || order.home === this.#home || this.#nameOf(order.home) !== undefined) continue;
      this.#drop(idOf(order));
      this.#remove(order).catch((error: unknown) => this.#options.onError(error, 'removing an old order'));
    }
  }

  #put(order: Order): void {
    const id = idOf(order);
    this.#rows.set(id, order);
    this.#byOp.add(order.opId, id);
  }

  #drop(id: string): void {
    const order = this.#rows.get(id);
    if (order === undefined) return;
    this.#rows.delete(id);
    this.#byOp.delete(order.opId, id);
  }
}

/** There is nothing to be done about it any more. */
const FINAL: ReadonlySet<Fault['kind']> = new Set([
  'not_found',
  'invalid_transition',
  'ambiguous',
  'halted',
  'org_forbidden',
]);
