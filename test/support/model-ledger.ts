/** The ledger of a cluster as plain TypeScript: what the functions in the database are to do, one call at a time. */
import type { AlertPercent } from '../../src/core/budget/envelope.ts';
import type { AccountName, AccountRow, Grant, Raised } from '../../src/core/budget/escrow.ts';

/** Rules that a mutant leaves out. */
export type LedgerRule =
  /** A sequence number that is not higher than the last one of the run changes nothing. */
  | 'refuses late exchanges'
  /** A run that was replaced may not write. */
  | 'refuses replaced runs'
  /** Grants of a settled run are freed when the reservations of its operations have expired. */
  | 'waits for reservations'
  /** Nothing of a run is given to others before it is settled. */
  | 'keeps what is not settled'
  /** Nothing is granted beyond the cap, whatever is needed. */
  | 'grants only what is free'
  /** A run that is settled has spent what its successor knows, not what it had reported. */
  | 'settles what was spent'
  /** Possible spending of a forgotten run is charged. */
  | 'charges what is forgotten'
  /** A server that may have lost the last exchanges grants nothing until every run has said what it keeps. */
  | 'waits for all after a fail-over'
  /** A run's holdings are taken over even if the server remembers less. */
  | 'believes what is kept'
  /** A session goes on for all gateways as long as one of them uses it. */
  | 'ends sessions together';

type Run = {
  sequence: number;
  state: 'live' | 'retired';
  isSettled: boolean;
  readonly grants: Map<string, { granted: number; spent: number }>;
};
type Account = {
  spent: number;
  out: number;
  level: 0 | AlertPercent;
  /** When a session or lineage ends, if nobody uses it until then. */
  endsAtMs: number;
  raised: Raised | undefined;
};
const newAccount = (): Account => ({ spent: 0, out: 0, level: 0, endsAtMs: -Infinity, raised: undefined });

const nameOf = ({ owner, period }: { readonly owner: string; readonly period: string }): string => `${owner} ${period}`;

export class ModelLedger {
  readonly accounts = new Map<string, Account>();
  readonly runs = new Map<string, Run>();
  readonly #without: LedgerRule | undefined;
  /** Runs that have not said what they keep since the last fail-over. */
  readonly unheard = new Set<string>();

  constructor(without?: LedgerRule) {
    this.#without = without;
  }

  join(run: string, settles?: { readonly run: string; readonly spent: ReadonlyMap<string, number> }): void {
    const settled = settles === undefined ? undefined : this.runs.get(settles.run);
    if (settles !== undefined && settled !== undefined && !settled.isSettled) {
      settled.state = 'retired';
      settled.isSettled = true;
      for (const [name, said] of settles.spent) {
        const spent = this.#without === 'settles what was spent' ? 0 : said;
        const grant = settled.grants.get(name) ?? { granted: 0, spent: 0 };
        settled.grants.set(name, grant);
        this.#move(name, grant, Math.max(grant.granted, spent), Math.max(grant.spent, spent));
      }
      if (this.#without === 'waits for reservations') this.free(settles.run);
    }
    this.runs.set(run, { sequence: 0, state: 'live', isSettled: false, grants: new Map() });
  }

  /** Another run has taken the name of this one. */
  retire(run: string): void {
    const retired = this.runs.get(run)!;
    retired.state = 'retired';
    if (this.#without === 'keeps what is not settled') this.free(run);
  }

  /** Frees the unspent grants of a settled run, once its reservations have expired. */
  free(run: string): void {
    for (const [name, grant] of this.runs.get(run)!.grants)
      this.#move(name, grant, Math.min(grant.granted, grant.spent), grant.spent);
  }

  /** A run counts from now on what an earlier one on its data directory has counted of limits. */
  adopt(run: string, from: string): void {
    const [mine, theirs] = [this.runs.get(run)!.grants, this.runs.get(from)!.grants];
    for (const [name, grant] of theirs) {
      mine.set(name, grant);
      theirs.delete(name);
    }
  }

  /** Whatever a run that is gone has used has left the span. */
  lapse(run: string): void {
    for (const [name, grant] of this.runs.get(run)!.grants) this.#move(name, grant, 0, 0);
    this.runs.get(run)!.grants.clear();
  }

  /** An operator has this run forgotten: what it is known to have spent stays charged. */
  charge(run: string, spent: number): void {
    if (this.#without === 'charges what is forgotten') return;
    const { grants } = this.runs.get(run)!;
    for (const [name, grant] of grants)
      this.#move(name, grant, Math.max(grant.granted, spent), Math.max(grant.spent, spent));
  }

  /** Another server takes over, which knows only what this one did at an earlier time. */
  failOver(to: ModelLedger): void {
    this.accounts.clear();
    this.runs.clear();
    this.copy(to);
    if (this.#without === 'waits for all after a fail-over') return;
    for (const [run, { state }] of this.runs) if (state === 'live') this.unheard.add(run);
  }

  copy(from: ModelLedger): void {
    for (const run of from.unheard) this.unheard.add(run);
    for (const [name, account] of from.accounts) this.accounts.set(name, { ...account });
    for (const [run, { grants, ...rest }] of from.runs)
      this.runs.set(run, { ...rest, grants: new Map(Array.from(grants, ([name, grant]) => [name, { ...grant }])) });
  }

  /** The names of all accounts. */
  names(): readonly AccountName[] {
    return Array.from(this.accounts.keys(), (name) => {
      const end = name.lastIndexOf(' ');
      return { owner: name.slice(0, end), period: name.slice(end + 1) };
    });
  }

  /** As plain data. */
  get state(): unknown {
    return [
      [...this.unheard],
      [...this.accounts],
      Array.from(this.runs, ([run, { sequence, state, isSettled, grants }]) => [
        run,
        sequence,
        state,
        isSettled,
        [...grants],
      ]),
    ];
  }

  /** Undefined: it came late. */
  exchange(
    run: string,
    sequence: number,
    rows: readonly AccountRow[],
    nowMs = 0,
  ): readonly Grant[] | 'replaced' | undefined {
    const writer = this.runs.get(run)!;
    if (writer.state === 'retired' && this.#without !== 'refuses replaced runs') return 'replaced';
    if (sequence <= writer.sequence && this.#without !== 'refuses late exchanges') return undefined;
    writer.sequence = sequence;
    this.unheard.delete(run);
    const live = [...this.runs.values()].filter(({ state }) => state === 'live').length;
    return rows.map((said): Grant => {
      const name = nameOf(said);
      const account = this.accounts.get(name) ?? newAccount();
      this.accounts.set(name, account);
      const isOver = said.period === 'life' && this.#isOver(run, said, account, nowMs);
      const row = isOver ? { ...said, keptMicroUsd: 0, spentMicroUsd: 0, neededMicroUsd: 0, wantedMicroUsd: 0 } : said;
      if (!isOver && isLater(row.raised, account.raised)) account.raised = row.raised;
      const grant = writer.grants.get(name) ?? { granted: 0, spent: 0 };
      writer.grants.set(name, grant);
      const isBelieved = this.#without !== 'believes what is kept';
      const kept = Math.max(
        isBelieved ? row.keptMicroUsd : Math.min(row.keptMicroUsd, grant.granted),
        row.spentMicroUsd,
      );
      this.#move(name, grant, kept, row.spentMicroUsd);
      const free = row.capMicroUsd === Infinity ? 0 : row.capMicroUsd - account.spent - account.out;
      const half = Math.trunc(free / (2 * Math.max(live, 1)));
      const isFree = free >= Math.max(row.neededMicroUsd, 1) || this.#without === 'grants only what is free';
      const isGranted = isFree && this.unheard.size === 0;
      const raise = isGranted ? Math.max(row.neededMicroUsd, Math.min(row.wantedMicroUsd, half)) : 0;
      this.#move(name, grant, kept + raise, row.spentMicroUsd);
      const level = levelOf(account.spent, row.capMicroUsd);
      const alertPercent = level !== 0 && level > account.level ? level : undefined;
      account.level = level;
      return {
        owner: row.owner,
        period: row.period,
        grantedMicroUsd: kept + raise,
        spentByAllMicroUsd: account.spent,
        heldByAllMicroUsd: account.out,
        alertPercent,
        raised: account.raised,
        isOver,
      };
    });
  }

  /** Ends a session that nobody uses any more. Answers whether this report is of one that has ended. */
  #isOver(run: string, { toMs, spentMicroUsd, ...row }: AccountRow, account: Account, nowMs: number): boolean {
    const name = nameOf(row);
    const { grants } = this.runs.get(run)!;
    const isHeld = [...this.runs].some(([other, { state, grants: theirs }]) => {
      const grant = theirs.get(name);
      return other !== run && state === 'live' && grant !== undefined && grant.granted > grant.spent;
    });
    const isIdle = toMs <= nowMs;
    const hasEnded = account.endsAtMs <= nowMs && (isIdle || !grants.has(name)) && !isHeld;
    if (hasEnded || (isIdle && this.#without === 'ends sessions together')) {
      Object.assign(account, newAccount());
      for (const other of this.runs.values()) other.grants.delete(name);
    }
    account.endsAtMs = Math.max(account.endsAtMs, toMs);
    const grant = grants.get(name);
    if (grant !== undefined && grant.granted === 0 && grant.spent === 0) grants.delete(name);
    return isIdle && spentMicroUsd > 0 && !grants.has(name);
  }

  /**
   * A period that a run counts again has the greatest of what the run has said of it. What it has used of a limit falls
   * as time passes.
   */
  #move(name: string, grant: { granted: number; spent: number }, granted: number, said: number): void {
    const account = this.accounts.get(name) ?? newAccount();
    this.accounts.set(name, account);
    const spent = name.startsWith('limit/') ? said : Math.max(said, grant.spent);
    account.spent += spent - grant.spent;
    account.out += Math.max(0, granted - said) - Math.max(0, grant.granted - grant.spent);
    Object.assign(grant, { granted: granted - said + spent, spent });
  }
}

const isLater = (one: Raised | undefined, other: Raised | undefined): boolean =>
  one !== undefined &&
  (other === undefined || one.atMs > other.atMs || (one.atMs === other.atMs && one.amount > other.amount));

function levelOf(spent: number, cap: number): 0 | AlertPercent {
  if (cap === Infinity || spent === 0) return 0;
  if (spent >= cap) return 100;
  return spent * 5 >= cap * 4 ? 80 : 0;
}
