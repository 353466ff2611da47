import { randomUUID } from 'node:crypto';
import { OneByOne } from '../core/base/one-by-one.ts';
import { fail, type Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import type { Member, Place } from '../ports/cluster.ts';
import type { Entry, LogAnswer, LogRow, LogStore, Verdict, Whole } from '../ports/cluster-log.ts';
import type { Accepted, ProposalEnds } from '../ports/sharing.ts';
import { LogRing, placeOf } from './log-ring.ts';

/** Has something act everywhere in this gateway that takes longer. False: it is to be tried again. */
export type Acting = () => Promise<boolean>;

/** Acts by the log in this gateway. All of it is synchronous, and may be done twice. */
export type Follower = {
  /** `isOwn`: this gateway has decided it, at this place of the log. */
  apply(entry: Entry, row: LogRow, isOwn: boolean): Acting | undefined;
  /** Takes this in place of all that was applied before. */
  restore(whole: Whole): Acting | undefined;
};

export type Proposal = ProposalEnds & {
  /** Entered together, or not at all. */
  readonly entries: readonly Entry[];
  /** How long the database is waited for. */
  readonly withinMs: number;
};

export type SharedLogOptions = {
  readonly store: LogStore;
  readonly follower: Follower;
  /** A clock that nobody sets. */
  readonly steadyMs: () => number;
  readonly sleep: (ms: number) => Promise<unknown>;
  /** Everything up to this place is acted by, in all threads. */
  readonly onActed: (place: Place) => void;
  /** Another server has taken over, and numbers of the log mean something else. */
  readonly onRestored: (place: Place) => void;
  /** Others may want to look: something was appended. */
  readonly onAppended: (seq: number) => void;
  readonly onError: (error: unknown, doing: string) => void;
};

type Batch = {
  readonly nonce: string;
  readonly proposals: readonly Queued[];
  verdicts?: readonly Verdict[] | undefined;
};
/** `isOver`: its caller has been answered. */
type Queued = Proposal & { isOver: boolean };

const MOST_ENTRIES = 500;
const RETRY_MS = 50;
const ACT_AGAIN_MS = 1_000;
const UNREACHABLE: Fault = { kind: 'store_unreachable', retryAfterSecs: 1 };

/**
 * The log of the cluster, as one gateway appends to it and applies it. Nothing is applied before it came back in the
 * log, so there is nothing to take back, and all gateways apply the same in the same order.
 */
export class SharedLog {
  readonly #options: SharedLogOptions;
  readonly #ring: LogRing;
  readonly #versions = new Map<string, number>();
  #place: Place;
  #queue: Queued[] = [];
  #pumping: Promise<void> | undefined;
  #inFlight: Batch | undefined;
  #following: Promise<boolean> | undefined;
  /** The database is asked one thing at a time, so that rows come in their order. */
  readonly #asking = new OneByOne();
  /** Places that are not acted by yet, in the order of the log. */
  readonly #acting: { readonly place: Place; isDone: boolean }[] = [];
  #acted: Place;
  #isStopped = false;

  constructor(options: SharedLogOptions, whole: Whole) {
    this.#options = options;
    this.#ring = new LogRing(options.steadyMs, whole.place);
    this.#place = whole.place;
    this.#acted = whole.place;
    this.#noteVersions(whole);
  }

  get applied(): number {
    return this.#place.seq;
  }

  /** Up to where it is acted by in all threads. */
  get acted(): Place {
    return this.#acted;
  }

  get place(): Place {
    return this.#place;
  }

  /** Whether this place is of the log that is applied here; undefined: it has not come so far here. */
  isSame({ seq, mark }: Place): boolean | undefined {
    if (seq > this.#place.seq) return undefined;
    return (seq === this.#place.seq ? this.#place.mark : this.#ring.markAt(seq)) === mark;
  }

  /** The `seq` that has changed it last, as far as it is applied here. */
  versionOf(kind: Entry['kind'], id: string): number {
    return this.#versions.get(`${kind} ${id}`) ?? 0;
  }

  /** Puts the change into the next append. Exactly one of its calls is made. */
  propose(proposal: Proposal): void {
    if (this.#isStopped) return proposal.failed(UNREACHABLE);
    const queued = { ...proposal, isOver: false };
    this.#queue.push(queued);
    void this.#options.sleep(proposal.withinMs).then(() => fails(queued));
    // The proposals of one turn go in one append.
    this.#pumping ??= Promise.resolve().then(() => this.#pump());
  }

  /** Applies what others have appended. Resolves with whether all was applied that there was when it was called. */
  async follow(): Promise<boolean> {
    if (this.#following !== undefined) await this.#following;
    this.#following ??= this.#asking
      .run(() => this.#followNow())
      .finally(() => {
        this.#following = undefined;
      });
    return this.#following;
  }

  stop(): void {
    this.#isStopped = true;
    for (const queued of this.#queue.splice(0)) fails(queued);
  }

  async #pump(): Promise<void> {
    try {
      while (this.#queue.length > 0) {
        const batch = { nonce: randomUUID(), proposals: this.#take() };
        await this.#asking.run(() => this.#append(batch));
      }
    } finally {
      this.#pumping = undefined;
    }
  }

  #take(): Queued[] {
    let entries = 0;
    const end = this.#queue.findIndex((each) => (entries += each.entries.length) > MOST_ENTRIES);
    return this.#queue.splice(0, end === -1 ? this.#queue.length : Math.max(1, end));
  }

  async #append(batch: Batch): Promise<void> {
    const { store, sleep, onAppended } = this.#options;
    const groups = batch.proposals.map(({ entries }) => entries);
    this.#inFlight = batch;
    while (!this.#isStopped && batch.proposals.some(({ isOver }) => !isOver)) {
      // Sent again under its nonce: what was done before is not done again.
      const answered = await this.#asked(() => store.append(batch.nonce, this.#place, groups));
      if (answered !== undefined && (await this.#taken(answered, batch))) return onAppended(this.#place.seq);
      await sleep(answered === undefined ? RETRY_MS : 0);
    }
    // If it comes all the same, it is applied as that of another gateway.
    this.#inFlight = undefined;
    for (const queued of batch.proposals) fails(queued);
  }

  /** Applies what was answered. False: it is not all, and has to be asked for again. */
  async #taken(answer: LogAnswer, batch: Batch): Promise<boolean> {
    if (answer.lost) {
      await this.#recover();
      return false;
    }
    const { mine } = answer;
    if (mine === undefined) return false;
    batch.verdicts = mine.verdicts;
    // A server had lost it, and others have offered what they knew of it: nobody knows what was refused.
    if (mine.verdicts === undefined) this.#inFlight = undefined;
    if (answer.isGap && !(await this.#restore())) return false;
    for (const row of answer.rows) this.#apply(row, answer.members);
    while (this.#inFlight !== undefined && this.#place.seq < mine.seq) if ((await this.#followOnce()) !== 'more') break;
    // It is part of what was read whole: too late to decide at its place.
    if (this.#place.seq >= mine.seq) this.#inFlight = undefined;
    if (this.#inFlight !== undefined) return false;
    for (const queued of batch.proposals) fails(queued);
    return true;
  }

  async #followNow(): Promise<boolean> {
    for (;;) {
      const step = await this.#followOnce();
      if (step !== 'more') return step === 'all';
    }
  }

  async #followOnce(): Promise<'all' | 'more' | 'failed'> {
    const answer = await this.#asked(() => this.#options.store.after(this.#place));
    if (answer === undefined) return 'failed';
    if (answer.lost) return (await this.#recover()) ? 'more' : 'failed';
    if (answer.isGap) return (await this.#restore()) ? 'more' : 'failed';
    for (const row of answer.rows) this.#apply(row, answer.members);
    return this.#place.seq < answer.seq ? 'more' : 'all';
  }

  async #asked(ask: () => ReturnType<LogStore['after']>): Promise<LogAnswer | undefined> {
    try {
      const answered = await ask();
      return answered.ok ? answered.value : undefined;
    } catch (error) {
      this.#options.onError(error, 'reading the log of the cluster');
      return undefined;
    }
  }

  /** In order, without a gap, and each once. */
  #apply(row: LogRow, members: readonly Member[]): void {
    if (row.seq !== this.#place.seq + 1) return;
    const own = this.#inFlight?.nonce === row.nonce && this.#inFlight.verdicts ? this.#inFlight : undefined;
    if (own !== undefined) this.#inFlight = undefined;
    const acting: Acting[] = [];
    if (own === undefined) for (const entry of row.entries) this.#enter(entry, row, false, acting);
    for (const [at, queued] of own?.proposals.entries() ?? []) {
      if (own?.verdicts?.[at] !== 'accepted') continue;
      const isOwn = !queued.isOver;
      queued.isOver = true;
      if (isOwn) this.#try(() => queued.accepted({ seq: row.seq, members }), 'deciding at a place of the log');
      for (const entry of queued.entries) this.#enter(entry, row, isOwn, acting);
    }
    this.#place = placeOf(row);
    this.#ring.add(row);
    this.#act(this.#place, acting);
    for (const [at, queued] of own?.proposals.entries() ?? []) {
      const verdict = own?.verdicts?.[at];
      if (verdict === undefined || verdict === 'accepted' || queued.isOver) continue;
      queued.isOver = true;
      this.#try(() => queued.refused(verdict), 'deciding anew');
    }
  }

  #enter(entry: Entry, row: LogRow, isOwn: boolean, acting: Acting[]): void {
    // The state that was read whole may be newer already.
    if (this.versionOf(entry.kind, entry.id) > row.seq) return;
    this.#try(() => {
      const act = this.#options.follower.apply(entry, row, isOwn);
      if (act !== undefined) acting.push(act);
    }, `applying ${entry.kind} of the cluster`);
    if (entry.kind === 'agents' || entry.kind === 'notice') return;
    const key = `${entry.kind} ${entry.id}`;
    if (entry.body === null) this.#versions.delete(key);
    else this.#versions.set(key, row.seq);
  }

  #try(work: () => void, doing: string): void {
    try {
      work();
    } catch (error) {
      this.#options.onError(error, doing);
    }
  }

  #act(place: Place, acting: readonly Acting[]): void {
    const mark = { place, isDone: acting.length === 0 };
    this.#acting.push(mark);
    if (mark.isDone) return this.#noteActed();
    void Promise.all(acting.map((act) => this.#untilDone(act))).then(() => {
      mark.isDone = true;
      this.#noteActed();
    });
  }

  async #untilDone(act: Acting): Promise<void> {
    while (!this.#isStopped) {
      try {
        if (await act()) return;
      } catch (error) {
        this.#options.onError(error, 'acting by the log of the cluster');
      }
      await this.#options.sleep(ACT_AGAIN_MS);
    }
  }

  #noteActed(): void {
    const before = this.#acted;
    while (this.#acting[0]?.isDone) this.#acted = this.#acting.shift()!.place;
    if (this.#acted !== before) this.#options.onActed(this.#acted);
  }

  /** Another server has taken over and lost the tail: what was applied here is offered to it again. */
  async #recover(): Promise<boolean> {
    const places = await this.#options.store.placesAfter(this.#ring.base.seq - 1);
    const here = places.ok ? places.value.at(-1) : undefined;
    if (!places.ok || here === undefined) return false;
    const split = this.#ring.split(places.value);
    if (split === undefined) return this.#restore();
    const { base } = this.#ring;
    const common = placeOf(split.kept.at(-1) ?? base);
    if (!(await this.#offer(split.lost, common))) return false;
    const whole = await this.#options.store.whole();
    const since = await this.#rowsAfter(common);
    if (!whole.ok || since === undefined) return false;
    this.#adopt(whole.value);
    // These are offered when yet another server loses them.
    this.#ring.reset(
      base,
      [...split.kept, ...since].filter(({ seq }) => seq <= this.#place.seq),
    );
    return true;
  }

  async #offer(lost: readonly LogRow[], common: Place): Promise<boolean> {
    for (const { nonce, entries, atMs } of lost) {
      // An id that was changed twice in one append is offered once, with the last word.
      const latest = new Map(entries.map((entry) => [keyOf(entry), entry]));
      if (latest.size === 0) continue;
      const groups = Array.from(latest.values(), (entry) => [offered(entry, atMs)]);
      const answered = await this.#asked(() => this.#options.store.append(nonce, common, groups));
      if (answered === undefined || answered.lost || answered.mine === undefined) return false;
    }
    return true;
  }

  async #rowsAfter(place: Place): Promise<readonly LogRow[] | undefined> {
    const rows: LogRow[] = [];
    for (let at = place; ; at = placeOf(rows.at(-1)!)) {
      const answered = await this.#asked(() => this.#options.store.after(at));
      if (answered === undefined || answered.lost || answered.isGap) return undefined;
      rows.push(...answered.rows);
      if ((rows.at(-1)?.seq ?? place.seq) >= answered.seq) return rows;
    }
  }

  async #restore(): Promise<boolean> {
    const whole = await this.#options.store.whole();
    if (!whole.ok) return false;
    this.#adopt(whole.value);
    this.#ring.reset(this.#place);
    return true;
  }

  #adopt(whole: Whole): void {
    this.#place = whole.place;
    this.#noteVersions(whole);
    this.#acting.length = 0;
    const act = this.#options.follower.restore(whole);
    this.#options.onRestored(this.#place);
    this.#act(this.#place, act === undefined ? [] : [act]);
  }

  #noteVersions({ states }: Whole): void {
    this.#versions.clear();
    for (const { kind, id, version } of states) this.#versions.set(`${kind} ${id}`, version);
  }
}

function fails(queued: Queued): void {
  if (queued.isOver) return;
  queued.isOver = true;
  queued.failed(UNREACHABLE);
}

const keyOf = ({ kind, id }: Entry): string => `${kind} ${id}`;

/** As old as it was when it was entered first, however many servers have lost it since. */
const offered = ({ kind, id, body, at }: Entry, atMs: number): Entry => ({ kind, id, body, at: at ?? atMs });

/** The proposal as a promise, for what needs no decision at its place. */
export const proposed = (
  log: Pick<SharedLog, 'propose'>,
  entries: readonly Entry[],
  withinMs: number,
): Promise<Result<Accepted, Fault | { readonly kind: 'refused'; readonly verdict: Verdict }>> =>
  new Promise((resolve) =>
    log.propose({
      entries,
      withinMs,
      accepted: (accepted) => resolve({ ok: true, value: accepted }),
      refused: (verdict) => resolve(fail({ kind: 'refused', verdict })),
      failed: (fault) => resolve(fail(fault)),
    }),
  );
