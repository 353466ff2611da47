/** Counts what limits limit, and says which of them leave no room (docs/spec.md, Limits of use). */
import type { AgentKey } from '../base/ids.ts';
import { copyOf } from '../base/text.ts';
import type { AccountRow, Grant } from '../budget/escrow.ts';
import type { OpNumber } from '../budget/reservations.ts';
import { covered } from '../policy/rule.ts';
import { type CompiledLimit, LimitIndex } from './compiled.ts';
import type { CountTable, LimitAccount, LimitGrants, LimitShortage } from './grants.ts';
import { type CountedFor, identityOf, keyOf, keyOfRow } from './keys.ts';
import { type KeepsRows, KnownRows, LASTING_PERS } from './known-rows.ts';
import type { LimitPer } from './limit.ts';
import { type Asked, type LimitAlert, type Reached, reachedBy, reachedOf, totalOf } from './reached.ts';
import { KeyRoom } from './room.ts';
import type { LimitChange, LimitRow } from './rows.ts';
import { LimitTable, type Said } from './table.ts';

export type LimitOptions = {
  /** Beyond so many keys in all, those unseen so far are denied. */
  readonly maxStates: number;
  /** A session or lineage that was not used for so long has ended. */
  readonly sessionTtlMs: number;
  /** The first agent of the lineage. */
  readonly firstOf: (key: AgentKey) => AgentKey;
  /** In a cluster: only what its ledger has granted is used. */
  readonly grants?: LimitGrants | undefined;
};

/** A limit in force, with what it has counted. */
export type Counted = CompiledLimit & { readonly table: LimitTable };

/** A check, as far as limits look at it. */
export type LimitedCheck = CountedFor & {
  readonly action: string;
  readonly resource: string;
  readonly costMicroUsd: number;
  /** Undefined: rows are looked up. */
  readonly keeper?: KeepsRows | undefined;
};

/** Undoes the counts of one check, in the order of the limits. */
export type LimitUndo = {
  readonly kind: 'limits';
  readonly tables: readonly LimitTable[];
  readonly keys: readonly string[];
  readonly atMs: number;
};

/** Undoes one decision of people. */
export type SaidUndo = {
  readonly kind: 'limit-said';
  readonly table: LimitTable;
  readonly key: string;
  readonly before: Said | undefined;
};

/** The states in which an operation holds its estimate. */
type Holding = {
  readonly tables: readonly LimitTable[];
  readonly keys: readonly string[];
  /** Its reservation at the beginning, and now. */
  readonly beganMicroUsd: number;
  heldMicroUsd: number;
};

/** A check lacks so much of the ledger's grants. */
type Lacking = Pick<Asked, 'table' | 'key' | 'row'> & { readonly lacks: number };

export type CountedUsage = { readonly costMicroUsd: number; readonly tokens: number };

/** After this many sweeps every key was looked at once, which takes ten minutes. */
const SWEEPS_OF_ALL = 60;
const LEAST_PER_SWEEP = 5_000;
const NO_ALERTS: readonly LimitAlert[] = [];

export class LimitTracker {
  readonly #options: LimitOptions;
  /** By the identity of a limit. Limits that are no longer in force stay until nothing is counted in them. */
  readonly #tables = new Map<string, LimitTable>();
  #index = new LimitIndex<Counted>([]);
  #inForce: readonly Counted[] = [];
  readonly #room: KeyRoom;
  /** Grows whenever a row is forgotten. */
  #generation = 0;
  readonly #holdings = new Map<OpNumber, Holding>();
  #dropped: string[] = [];
  #sweeping = 0;
  /** The check being decided: its tables, keys and rows; -1: not yet. */
  #tableOf: LimitTable[] = [];
  #keyOf: string[] = [];
  #rowOf: number[] = [];
  #policyOf: string[] = [];
  #matched = 0;
  #keys: Partial<Record<LimitPer, string>> = {};
  #lacking: Lacking[] = [];
  /** Usage of keys for which there was no room. */
  overflows = 0;
  /** Whether the latest usage record is beyond what the ledger of a cluster has granted. */
  exceedsGrants = false;

  constructor(options: LimitOptions) {
    this.#options = options;
    this.#room = new KeyRoom(options.maxStates);
  }

  /** Undefined outside a cluster. */
  get grants(): LimitGrants | undefined {
    return this.#options.grants;
  }

  /** How many keys are counted for. */
  get size(): number {
    return this.#room.size;
  }

  get isAny(): boolean {
    return this.#inForce.length > 0;
  }

  /** Counts stay as long as unit, span and key of a limit stay the same. */
  reconfigure(limits: readonly CompiledLimit[]): void {
    // The new field first: then all have one hidden class (docs/style.md, 3).
    this.#inForce = limits.map((each) => ({ table: this.#tableFor(each), ...each }));
    this.#index = new LimitIndex(this.#inForce.map((item) => ({ scope: item.scope, item })));
    this.#options.grants?.escrowLower();
  }

  #tableFor({ limit, policy }: CompiledLimit): LimitTable {
    const identity = identityOf(policy, limit);
    const table = this.#tables.get(identity);
    if (table === undefined) {
      const { sessionTtlMs: ttlMs, grants } = this.#options;
      const made = new LimitTable(identity, limit, { ttlMs, grants });
      this.#tables.set(identity, made);
      return made;
    }
    table.limit = limit;
    return table;
  }

  /**
   * The first limit that leaves no room for the check. Changes nothing but what time does; `shortages` may follow, and
   * if there are none, `count`.
   */
  firstReached(check: LimitedCheck, nowMs: number): Reached | undefined {
    this.#matched = 0;
    if (this.#lacking.length > 0) this.#lacking = [];
    const { action, resource, costMicroUsd } = check;
    const limits = this.#index.reaching(check.agent);
    let unseen = 0;
    if (limits.length > 0) this.#keys = {};
    const known = check.keeper === undefined ? undefined : this.#knownTo(check.keeper, limits);
    for (let nth = 0; nth < limits.length; nth += 1) {
      const { actions, resources, isOfAll, limit, policy, table } = limits[nth]!;
      if (!isOfAll && !(covered(actions, action) && covered(resources, resource))) continue;
      let row = known === undefined ? -1 : known.rowOf(nth);
      const key = row === -1 ? this.#keyFor(limit.per, check) : known!.keys[nth]!;
      if (key === undefined) continue;
      if (row !== -1) table.roll(row, key, nowMs);
      else {
        row = table.find(key, nowMs);
        if (row !== -1 && LASTING_PERS.has(limit.per)) known?.set(nth, key, row);
      }
      if (row === -1) unseen += 1;
      if (row === -1 && !this.#room.has(key, unseen))
        return { limit, policy, key, used: 0, reserved: 0, max: limit.max, resetsAtMs: undefined, why: 'full' };
      const added = limit.unit === 'calls' ? 1 : limit.unit === 'usd' ? costMicroUsd : 0;
      // Nearly always it is a limit of calls with room below its maximum as it is written.
      if (limit.unit !== 'calls' || (row !== -1 && table.usedOf(row) >= limit.max)) {
        const reached = reachedBy({ policy, table, key, row, added }, nowMs);
        if (reached !== undefined) return reached;
      }
      if (this.#options.grants !== undefined) {
        const refused = this.#refusedBy({ policy, table, key, row, added }, nowMs);
        if (refused !== undefined) return refused;
      }
      const at = this.#matched;
      this.#tableOf[at] = table;
      this.#keyOf[at] = key;
      this.#rowOf[at] = row;
      this.#policyOf[at] = policy;
      this.#matched = at + 1;
    }
    return undefined;
  }

  /** The ledger has granted too little, and has just said that there is no more; else it is to be asked. */
  #refusedBy(asked: Asked, nowMs: number): Reached | undefined {
    const { table, key, row } = asked;
    const account = row === -1 ? undefined : table.accounts[row];
    const lacks = totalOf(asked) - (account?.room(nowMs) ?? 0);
    if (lacks <= 0) return undefined;
    const exhausted = account?.exhaustedFor(lacks, nowMs);
    if (exhausted === undefined) {
      this.#lacking.push({ table, key, row, lacks });
      return undefined;
    }
    const reached = reachedOf(asked, nowMs);
    return exhausted.isUnconfirmed ? { ...reached, why: 'unconfirmed', resetsAtMs: undefined } : reached;
  }

  /** Answers how much the ledger has to grant before the check of `firstReached` can be decided; undefined: nothing. */
  shortages(nowMs: number): readonly LimitShortage[] | undefined {
    if (this.#lacking.length === 0) return undefined;
    return this.#lacking.map(({ table, key, row, lacks }) => {
      const kept = row === -1 ? this.#create(table, copyOf(key), nowMs) : row;
      return { limited: table.accounts[kept]!, lacksMicroUsd: lacks };
    });
  }

  #knownTo(keeper: KeepsRows, limits: readonly Counted[]): KnownRows {
    const known = keeper.limitRows;
    if (known?.isOf(limits, this.#generation) === true) return known;
    const made = new KnownRows(limits, this.#generation);
    keeper.limitRows = made;
    return made;
  }

  /**
   * Counts the check that `firstReached` has found room for, in the same step. `heldMicroUsd`: what its operation holds
   * from now on. Undefined: no limit applies.
   */
  count(
    op: OpNumber,
    heldMicroUsd: number,
    nowMs: number,
  ): { readonly undo: LimitUndo; readonly alerts: readonly LimitAlert[] } | undefined {
    const matched = this.#matched;
    if (this.#holdings.size > 0) this.#holdings.delete(op);
    if (matched === 0) return undefined;
    const tables = this.#tableOf.slice(0, matched);
    const keys = this.#keyOf.slice(0, matched);
    const { grants } = this.#options;
    let alerts = NO_ALERTS;
    let isSpending = false;
    for (let nth = 0; nth < matched; nth += 1) {
      const table = tables[nth]!;
      if (this.#rowOf[nth] === -1) {
        keys[nth] = copyOf(keys[nth]!);
        this.#rowOf[nth] = this.#create(table, keys[nth]!, nowMs);
      }
      const row = this.#rowOf[nth]!;
      const key = keys[nth]!;
      if (grants !== undefined) table.accounts[row]!.usedAtMs = nowMs;
      if (table.limit.unit === 'calls') {
        table.add(key, row, 1, nowMs);
        if (table.usedOf(row) * 5 >= table.limit.max * 4 || table.alertedOf(row) > 0)
          alerts = this.#alert(alerts, { policy: this.#policyOf[nth]!, table, key, row }, nowMs);
      } else {
        isSpending = true;
        table.touch(key, row, nowMs);
        if (table.limit.unit === 'usd' && heldMicroUsd > 0) table.hold(row, heldMicroUsd);
      }
    }
    if (isSpending) this.#holdings.set(op, { tables, keys, beganMicroUsd: heldMicroUsd, heldMicroUsd });
    return { undo: { kind: 'limits', tables, keys, atMs: nowMs }, alerts };
  }

  /** A session that goes on asking has not ended. */
  keepAlive({ limit, policy, key }: Reached, nowMs: number): void {
    const state = this.#stateOf(policy, limit.id, key, nowMs);
    if (state !== undefined && limit.everyMs === undefined) state.table.touch(key, state.row, nowMs);
  }

  /** The check could not be recorded, so it never was. */
  takeBack({ tables, keys, atMs }: LimitUndo, nowMs: number): void {
    for (let nth = 0; nth < tables.length; nth += 1) {
      const table = tables[nth]!;
      const row = table.find(keys[nth]!, nowMs);
      if (table.limit.unit === 'calls' && row !== -1) table.takeBack(keys[nth]!, row, 1, atMs);
    }
  }

  /** The operation holds so much money from now on: see `Reservations`. More than it began with does not count. */
  follow(op: OpNumber, microUsd: number): void {
    const holding = this.#holdings.get(op);
    if (holding === undefined) return;
    const held = Math.min(holding.beganMicroUsd, microUsd);
    if (held === holding.heldMicroUsd) return;
    for (const [nth, table] of holding.tables.entries()) {
      if (table.limit.unit !== 'usd') continue;
      const row = table.rowOf(holding.keys[nth]!);
      if (row !== undefined) table.hold(row, held - holding.heldMicroUsd);
    }
    holding.heldMicroUsd = held;
  }

  /** The operation has left the registry. */
  forget(op: OpNumber): void {
    if (this.#holdings.size > 0) this.#holdings.delete(op);
  }

  /**
   * A usage record is a fact: it counts whatever it exceeds. It counts where the check of its operation did; without
   * one, in limits that count whatever is done.
   */
  record(by: CountedFor, op: OpNumber | undefined, usage: CountedUsage, nowMs: number): readonly LimitAlert[] {
    this.exceedsGrants = false;
    const holding = op === undefined ? undefined : this.#holdings.get(op);
    let alerts = NO_ALERTS;
    if (holding !== undefined) {
      for (const [nth, table] of holding.tables.entries())
        alerts = this.#spend(alerts, { policy: '', table, key: holding.keys[nth]! }, usage, nowMs);
      return alerts;
    }
    this.#keys = {};
    for (const { isOfAll, limit, policy, table } of this.#index.reaching(by.agent)) {
      const key = isOfAll && limit.unit !== 'calls' ? this.#keyFor(limit.per, by) : undefined;
      if (key !== undefined) alerts = this.#spend(alerts, { policy, table, key }, usage, nowMs);
    }
    return alerts;
  }

  #spend(
    alerts: readonly LimitAlert[],
    { policy, table, key }: { readonly policy: string; readonly table: LimitTable; readonly key: string },
    { costMicroUsd, tokens }: CountedUsage,
    nowMs: number,
  ): readonly LimitAlert[] {
    const { unit } = table.limit;
    const amount = unit === 'usd' ? costMicroUsd : unit === 'tokens' ? tokens : 0;
    if (amount === 0) return alerts;
    let row = table.find(key, nowMs);
    if (row === -1 && !this.#room.has(key, 1)) {
      this.overflows += 1;
      return alerts;
    }
    if (row === -1) row = this.#create(table, copyOf(key), nowMs);
    table.add(key, row, amount, nowMs);
    const account = table.accounts[row];
    if (account !== undefined && account.held(nowMs) > account.granted) this.#hurry(account);
    return this.#alert(alerts, { policy, table, key, row }, nowMs);
  }

  /** More is used than was granted: the ledger is told at once. */
  #hurry(account: LimitAccount): void {
    this.#options.grants?.hurry(account);
    this.exceedsGrants = true;
  }

  /** With one more for each level that is reached for the first time, or again. */
  #alert(
    alerts: readonly LimitAlert[],
    { policy, table, key, row }: { policy: string; table: LimitTable; key: string; row: number },
    nowMs: number,
  ): readonly LimitAlert[] {
    if (this.#options.grants !== undefined) return alerts; // the ledger knows the use of all gateways
    const used = table.usedOf(row);
    const max = table.maxOf(key, nowMs);
    const level = used >= max ? 100 : used * 5 >= max * 4 ? 80 : 0;
    const before = table.alertedOf(row);
    if (level === before) return alerts;
    table.setAlerted(row, level);
    const levels = ([80, 100] as const).filter((each) => each > before && each <= level);
    const { limit } = table;
    const named = policy === '' ? this.#policyNameOf(table) : policy;
    return [...alerts, ...levels.map((percent) => ({ limit, policy: named, key, used, max, percent }))];
  }

  #policyNameOf(table: CountTable): string {
    return this.#inForce.find((each) => each.table === table)?.policy ?? '';
  }

  #create(table: LimitTable, key: string, nowMs: number): number {
    this.#room.resize(key, 1);
    return table.create(key, nowMs);
  }

  /** Undefined: there is none, such as an org of an agent without one. */
  #keyFor(per: LimitPer, by: CountedFor): string | undefined {
    this.#keys[per] ??= keyOf(per, by, this.#options.firstOf);
    return this.#keys[per] === '' ? undefined : this.#keys[per];
  }

  /** The limit of this name in force, with the row of this key; undefined where nothing is counted for it. */
  #stateOf(policy: string, id: string, key: string, nowMs: number) {
    const table = this.#inForce.find((each) => each.policy === policy && each.limit.id === id)?.table;
    const row = table?.find(key, nowMs) ?? -1;
    return table === undefined || row === -1 ? undefined : { table, row };
  }

  /** Applies people's decision about the key from now on. Undefined: it has reset meanwhile, or knows it already. */
  say(
    said: 'approve' | 'deny',
    { policy, id, key, approvalId }: Record<'policy' | 'id' | 'key' | 'approvalId', string>,
    nowMs: number,
  ): SaidUndo | undefined {
    const state = this.#stateOf(policy, id, key, nowMs) ?? this.#begunElsewhere(policy, id, key, nowMs);
    if (state === undefined) return undefined;
    const { table, row } = state;
    const before = table.saidOf(key);
    if (before?.approvalId === approvalId) return undefined;
    const account = table.accounts[row];
    // Said to all gateways once, and heard again after a start.
    if (account !== undefined && nowMs <= Math.max(before?.raisedAtMs ?? 0, before?.deniedAtMs ?? 0)) return undefined;
    if (account !== undefined) account.exhausted = undefined;
    if (said === 'approve') table.raise(key, row, approvalId, nowMs);
    else table.deny(key, row, approvalId, nowMs);
    return { kind: 'limit-said', table, key, before };
  }

  /** In a cluster a key may be raised that only other gateways have counted for. */
  #begunElsewhere(policy: string, id: string, key: string, nowMs: number) {
    const table = this.#inForce.find((each) => each.policy === policy && each.limit.id === id)?.table;
    if (this.#options.grants === undefined || table === undefined || !this.#room.has(key, 1)) return undefined;
    return { table, row: this.#create(table, copyOf(key), nowMs) };
  }

  /** Takes what the ledger of a cluster has answered to these rows. Returns the alerts that it raises. */
  takeGrants(rows: readonly AccountRow[], grants: readonly Grant[], nowMs: number): readonly LimitAlert[] {
    const alerts: LimitAlert[] = [];
    this.#options.grants?.grant(rows, grants, nowMs, nowMs, (account, row, grant) => {
      const { table, key } = account;
      account.grantedUnder = row.capMicroUsd;
      if (grant.isOver) account.restart(row.spentMicroUsd);
      else if (grant.raised !== undefined) table.hear(key, account.row, grant.raised);
      if (grant.alertPercent === undefined) return;
      const named = { limit: table.limit, policy: this.#policyNameOf(table), key };
      const { alertPercent: percent, spentByAllMicroUsd: used } = grant;
      if (named.policy !== '') alerts.push({ ...named, used, max: row.capMicroUsd, percent });
    });
    return alerts;
  }

  unsay({ table, key, before }: SaidUndo): void {
    const row = table.rowOf(key);
    if (row !== undefined) table.unsay(key, row, before);
  }

  /** Forgets what counts no more, looking at a limited number of keys. */
  sweep(nowMs: number, most = Math.max(LEAST_PER_SWEEP, Math.ceil(this.#room.size / SWEEPS_OF_ALL))): void {
    const tables = [...this.#tables.entries()];
    for (let tried = 0, looked = 0; tried < tables.length && looked < most; tried += 1) {
      const [identity, table] = tables[this.#sweeping % tables.length]!;
      const before = looked;
      looked += table.sweep(most - looked, nowMs, (key) => {
        this.#room.resize(key, -1);
        this.#generation += 1;
        this.#dropped.push(keyOfRow(identity, key));
      });
      if (looked - before < table.size && looked >= most) return;
      this.#sweeping += 1;
    }
  }

  /** Limits in force, with their counts. */
  get counted(): readonly Counted[] {
    return this.#inForce;
  }

  /** Returns the changes that a store must make to catch up, since the last call. */
  drainChanges(): LimitChange[] {
    const changes: LimitChange[] = this.#dropped.map((key) => ({ key, row: undefined }));
    this.#dropped = [];
    for (const [identity, table] of this.#tables)
      table.drain((key, state) => {
        changes.push({ key: keyOfRow(identity, key), row: { kind: 'limit', limit: identity, key, state } });
      });
    return changes;
  }

  /** For changes that the store could not write: they come again. */
  requeueChanges(changes: readonly LimitChange[]): void {
    for (const { key, row } of changes) {
      if (row === undefined) this.#dropped.push(key);
      else this.#tables.get(row.limit)?.requeue(row.key);
    }
  }

  /** Takes back what was stored, after `reconfigure` and before the first use. */
  restore(rows: Iterable<LimitRow>): void {
    for (const { limit, key, state } of rows) {
      const table = this.#tables.get(limit);
      if (table === undefined || table.rowOf(key) !== undefined) {
        this.#dropped.push(keyOfRow(limit, key));
        continue;
      }
      this.#room.resize(key, 1);
      table.restore(key, state);
    }
  }
}
