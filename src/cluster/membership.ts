import type { Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import type { Beat, Joining, Member, MemberStore, Membership, RunId } from '../ports/cluster.ts';
import type { ClusterClock } from './clock.ts';

/** Two clocks: one that nobody sets, and one that goes on while the machine is suspended. */
export type Clocks = { readonly steadyMs: () => number; readonly wallMs: () => number };

export type KeepMembershipOptions = {
  readonly store: MemberStore;
  readonly joining: Joining;
  readonly clocks: Clocks;
  /** Each beat compares it with the database's. */
  readonly clock: ClusterClock;
  /** Reads everything again that other gateways may have changed. Called when the lease was over. */
  readonly catchUp: () => Promise<Result<void, Fault>>;
  readonly reportOf: () => Pick<Beat, 'policyVersion' | 'auditHead' | 'isOnBus' | 'applied'>;
  /** Called with all of them, each time they are read. */
  readonly onBeat: (members: readonly Member[]) => void;
  /** Whether everything was read again since the last call, so that what was not confirmed is made up for. */
  readonly hasCaughtUp: () => boolean;
  /** This run must end. */
  readonly onReplaced: () => void;
  readonly log: {
    info(message: string, fields?: object): void;
    warn(message: string, fields?: object): void;
  };
};

export const LEASE_MS = 5_000;
const ENDED = { steadyMs: -Infinity, wallMs: -Infinity };
const BEAT_EVERY_MS = 1_000;
const TIDY_EVERY_MS = 5_000;
/** A gateway whose lease is over holds checks back for this long while it catches up. */
const CATCH_UP_MS = 250;

/**
 * Keeps this run a member: a beat every second extends its lease, which ends here before it ends in the database. A run
 * whose lease is over catches up before it serves again, or is found to be cut off.
 */
export class KeptMembership implements Membership {
  readonly #options: KeepMembershipOptions;
  readonly #listeners: (() => void)[] = [];
  #members: readonly Member[] = [];
  /** How often they were read. */
  #looks = 0;
  /** By each of the clocks. */
  #leaseEnds = ENDED;
  /** By the clock of the database. */
  #extendedToMs = Infinity;
  #reachedAtMs: number;
  /** The database could not be reached in the time that checks wait for it. */
  #isCutOff = false;
  #isReplaced = false;
  #isStopped = false;
  #isClockOff = false;
  #tidiedAtMs = -Infinity;
  #isTidying = false;
  #beating: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #waiting: (() => void)[] = [];
  #waitEnds: NodeJS.Timeout | undefined;

  constructor(options: KeepMembershipOptions) {
    this.#options = options;
    this.#reachedAtMs = options.clocks.steadyMs();
  }

  get self(): RunId {
    return this.#options.joining.run;
  }

  get name(): string {
    return this.#options.joining.name;
  }

  get isLeased(): boolean {
    const { steadyMs, wallMs } = this.#options.clocks;
    return steadyMs() < this.#leaseEnds.steadyMs && wallMs() < this.#leaseEnds.wallMs;
  }

  get isCutOff(): boolean {
    return this.#isCutOff;
  }

  get isReplaced(): boolean {
    return this.#isReplaced;
  }

  get unreachedMs(): number {
    return this.#options.clocks.steadyMs() - this.#reachedAtMs;
  }

  others(): readonly Member[] {
    return this.#members.filter(({ run, state }) => run !== this.self && state !== 'retired');
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  async lookAgain(): Promise<boolean> {
    await this.#beating; // it may have been answered before what is looked for was written
    const before = this.#looks;
    await this.#beat();
    return this.#looks > before;
  }

  /** Joins, and beats once. Faults: those of the database; `conflict` where another run took the name meanwhile. */
  async start(): Promise<Result<void, Fault>> {
    const { store, joining } = this.#options;
    const joined = await store.join(joining);
    if (!joined.ok) return joined;
    await this.#beat();
    this.#timer = setInterval(() => void this.#beat(), BEAT_EVERY_MS);
    return joined;
  }

  stop(): void {
    this.#isStopped = true;
    clearInterval(this.#timer);
    clearTimeout(this.#waitEnds);
    this.#release();
  }

  /** Whether checks may be decided now; else `whenServing` says when. */
  get isServing(): boolean {
    return this.isLeased || this.#isCutOff || this.#isReplaced;
  }

  /**
   * Calls back once this gateway has caught up, or is known to be cut off: after a quarter of a second at the latest,
   * in the order in which they asked.
   */
  whenServing(call: () => void): void {
    this.#waiting.push(call);
    this.#awaitLease();
  }

  #awaitLease(): void {
    if (this.#waitEnds !== undefined) return;
    this.#waitEnds = setTimeout(() => this.#cutOff(), CATCH_UP_MS);
    // A beat under way may have been stopped with this process, and fail only because of that.
    const underWay = this.#beating ?? Promise.resolve();
    void underWay.then(() => (this.isLeased ? undefined : this.#beat()));
  }

  #cutOff(): void {
    this.#waitEnds = undefined;
    if (!this.isLeased && !this.#isCutOff) {
      this.#isCutOff = true;
      this.#options.log.warn('the database of the cluster cannot be reached', {
        onOutage: this.#options.joining.onOutage,
      });
      this.#changed();
    }
    this.#release();
  }

  #release(): void {
    for (const call of this.#waiting.splice(0)) call();
  }

  /** Beats one at a time; callers meanwhile wait for the one under way. Never rejects. */
  #beat(): Promise<void> {
    this.#beating ??= this.#beatOnce()
      .catch((error: unknown) => this.#options.log.warn('a beat of the cluster failed', { error: String(error) }))
      .finally(() => {
        this.#beating = undefined;
      });
    return this.#beating;
  }

  async #beatOnce(): Promise<void> {
    const { store, clocks, clock, catchUp, hasCaughtUp, reportOf, joining } = this.#options;
    if (this.#isReplaced || this.#isStopped) return;
    const sent = { steadyMs: clocks.steadyMs(), wallMs: clocks.wallMs() };
    const beaten = await clock.compare(
      () => store.beat({ ...reportOf(), skewMs: clock.skewMs, isCaughtUp: hasCaughtUp() }),
      (answer) => (answer.ok ? this.#beatenAtMs(answer.value) : undefined),
    );
    if (!beaten.ok) {
      if (beaten.fault.kind === 'replaced') return this.#replaced();
      if (beaten.fault.kind === 'unknown_run') await store.join(joining);
      return this.#noticeOutage();
    }
    this.#reachedAtMs = clocks.steadyMs();
    this.#noteClock();
    if (this.#hadLapsed(beaten.value)) this.#leaseEnds = ENDED;
    // Else what was revoked while this run was away would be decided by once more.
    if ((!this.isLeased || this.#isCutOff) && !(await catchUp()).ok) return;
    this.#leaseEnds = { steadyMs: sent.steadyMs + LEASE_MS, wallMs: sent.wallMs + LEASE_MS };
    this.#noteMembers(beaten.value);
    if (this.isLeased) this.#isBack();
    // Not with every so many beats: each order that waits for the others asks for one.
    if (sent.steadyMs - this.#tidiedAtMs >= TIDY_EVERY_MS) void this.#tidy(sent.steadyMs);
  }

  /**
   * Whether the lease was over when the database extended it. Neither clock here tells that where the whole machine was
   * suspended, and its wall clock with it.
   */
  #hadLapsed(members: readonly Member[]): boolean {
    const before = this.#extendedToMs;
    this.#extendedToMs = members.find(({ run }) => run === this.self)?.leaseUntilMs ?? before;
    return this.#extendedToMs - before > LEASE_MS;
  }

  /** Also where nobody has asked for a decision meanwhile: the outage is to be seen. */
  #noticeOutage(): void {
    if (!this.isLeased && !this.#isCutOff) this.#awaitLease();
  }

  #isBack(): void {
    clearTimeout(this.#waitEnds);
    this.#waitEnds = undefined;
    if (this.#isCutOff) {
      this.#isCutOff = false;
      this.#options.log.info('the database of the cluster is reached again');
      this.#changed();
    }
    this.#release();
  }

  /** Beats do not wait for it. One at a time; never rejects. */
  async #tidy(nowMs: number): Promise<void> {
    if (this.#isTidying) return;
    this.#isTidying = true;
    this.#tidiedAtMs = nowMs;
    try {
      await this.#options.store.tidy();
    } catch (error) {
      this.#options.log.warn('tidying the tables of the cluster failed', { error: String(error) });
    } finally {
      this.#isTidying = false;
    }
  }

  /** The database has extended the lease by this time of its clock. */
  #beatenAtMs(members: readonly Member[]): number | undefined {
    const own = members.find(({ run }) => run === this.self);
    return own && own.leaseUntilMs - LEASE_MS;
  }

  #noteClock(): void {
    const { clock, log } = this.#options;
    if (clock.isOff && !this.#isClockOff)
      log.warn('the clock of this gateway is wrong', { aheadOfDatabaseMs: clock.skewMs });
    this.#isClockOff = clock.isOff;
  }

  #replaced(): void {
    this.#isReplaced = true;
    this.#changed();
    this.#release();
    this.#options.onReplaced();
  }

  #noteMembers(members: readonly Member[]): void {
    const before = this.#members;
    this.#members = members;
    this.#looks += 1;
    this.#options.onBeat(members);
    const runs = (of: readonly Member[]): string => of.map(({ run, state }) => `${run} ${state}`).join();
    if (runs(before) !== runs(members)) this.#changed();
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }
}
