import type { Bus, Member, MemberStore, Place, RunId } from '../ports/cluster.ts';
import type { Accepted } from '../ports/sharing.ts';

export type AppliedOptions = {
  readonly self: RunId;
  readonly bus: Bus;
  readonly store: Pick<MemberStore, 'noteUnconfirmed'>;
  /** Whether this place is of the log that this gateway has applied; undefined: it has not come so far. */
  readonly isSame: (place: Place) => boolean | undefined;
  readonly after: (ms: number, call: () => void) => () => void;
  /** A clock that nobody sets. */
  readonly steadyMs: () => number;
};

export type PassOptions = {
  /** A second, if it is not given. */
  readonly withinMs?: number;
  /** Names of gateways that are not waited for. */
  readonly without?: readonly string[];
};

const CONFIRM_WITHIN_MS = 1_000;
/** A lease of 5 s, and half as long again: it has ended by then, whatever the clock of the database shows. */
const LEASED_FOR_MS = 7_500;
/** The place is said this often at most. */
const SAY_EVERY_MS = 2;

type Waiting = {
  seq: number;
  /** Runs that have not applied it yet. */
  readonly lacking: Set<RunId>;
  /** How many of those are live. */
  awaited: number;
  readonly done: () => void;
};

/**
 * How far each gateway acts by the log, and who waits for that: a change is answered once all who took part when it was
 * entered act by it. A confirmation costs those who wait for it.
 */
export class AppliedEverywhere {
  readonly #options: AppliedOptions;
  readonly #acted = new Map<RunId, number>();
  /** When others were live last, or first seen, by a clock that nobody sets. */
  readonly #liveAtMs = new Map<RunId, number>();
  /** By whom they wait for, in the order of the log. */
  readonly #waiting = new Map<RunId, Waiting[]>();
  /** Places of others beyond this gateway's own: a server that took over may have made another log of it. */
  readonly #ahead = new Map<RunId, Place>();
  #own: Place | undefined;
  #isSaying = false;
  /** Not confirmed by somebody, since the start: for the metrics. */
  unconfirmed = 0;

  constructor(options: AppliedOptions) {
    this.#options = options;
    options.bus.onMessage((from, message) => {
      if (message.type === 'acted') this.note(from, message.place);
    });
  }

  /** This gateway acts by everything up to there. */
  say(place: Place): void {
    this.#own = place;
    this.note(this.#options.self, place);
    for (const [run, ahead] of [...this.#ahead]) this.note(run, ahead);
    if (this.#isSaying) return;
    this.#isSaying = true;
    this.#options.after(SAY_EVERY_MS, () => {
      this.#isSaying = false;
      if (this.#own !== undefined) this.#options.bus.send('all', { type: 'acted', place: this.#own });
    });
  }

  /** Another one does, as it says itself or the database. */
  note(run: RunId, place: Place): void {
    const isSame = this.#options.isSame(place);
    this.#ahead.delete(run);
    if (isSame === undefined) this.#ahead.set(run, place);
    if (!isSame || place.seq <= (this.#acted.get(run) ?? 0)) return;
    this.#acted.set(run, place.seq);
    const waiting = this.#waiting.get(run);
    while (waiting?.[0] !== undefined && waiting[0].seq <= place.seq) this.#confirm(waiting.shift()!, run);
  }

  /**
   * Numbers of the log mean something else from now on: a server that took over had lost its tail. What was entered
   * before has been offered again, up to this place.
   */
  forget({ seq }: Place): void {
    this.#acted.clear();
    this.#ahead.clear();
    for (const waiting of this.#waiting.values()) for (const each of waiting) each.seq = seq;
  }

  /** Takes over who takes part: nobody waits for a suspect, nor for one that has ended. */
  noteMembers(members: readonly Member[]): void {
    const live = new Set(members.flatMap(({ run, state }) => (state === 'live' ? run : [])));
    for (const [run, waiting] of this.#waiting) {
      if (live.has(run)) continue;
      this.#waiting.delete(run);
      for (const each of waiting) this.#stopWaiting(each);
    }
    const nowMs = this.#options.steadyMs();
    for (const { run } of members) if (live.has(run) || !this.#liveAtMs.has(run)) this.#liveAtMs.set(run, nowMs);
    const known = new Set(members.map(({ run }) => run));
    for (const run of [...this.#acted.keys(), ...this.#ahead.keys(), ...this.#liveAtMs.keys()])
      if (!known.has(run)) this.#forgetRun(run);
    for (const { run, applied } of members)
      if (run !== this.#options.self && applied !== undefined) this.note(run, applied);
  }

  /** Resolves once all act by it, this one too, after a second at the latest, with the names of those that do not. */
  async pass(
    { seq, members }: Accepted,
    { withinMs = CONFIRM_WITHIN_MS, without = [] }: PassOptions = {},
  ): Promise<readonly string[]> {
    const concerned = members.filter((member) => !without.includes(member.name) && this.#counts(member));
    const lacking = concerned.filter(({ run }) => this.#lacks(run, seq));
    const live = lacking.filter(({ state }) => state === 'live').map(({ run }) => run);
    const left = live.length === 0 ? new Set<RunId>() : await this.#untilActed(seq, live, withinMs);
    const missing = lacking.filter(({ run, state }) => (state === 'live' ? left.has(run) : this.#lacks(run, seq)));
    if (missing.length > 0) {
      this.unconfirmed += 1;
      void this.#options.store.noteUnconfirmed(missing.map(({ run }) => run));
    }
    return missing.map(({ name }) => name);
  }

  /** Answers who has not. */
  #untilActed(seq: number, live: readonly RunId[], withinMs: number): Promise<ReadonlySet<RunId>> {
    return new Promise((resolve) => {
      const lacking = new Set(live);
      const end = (): void => {
        waiting.awaited = 0;
        resolve(lacking);
      };
      const cancel = this.#options.after(withinMs, end);
      const done = (): void => {
        cancel();
        end();
      };
      const waiting: Waiting = { seq, lacking, awaited: live.length, done };
      for (const run of live) {
        const queue = this.#waiting.get(run) ?? [];
        this.#waiting.set(run, queue);
        // Most come in the order of the log.
        const at = queue.findLastIndex((each) => each.seq <= seq);
        queue.splice(at + 1, 0, waiting);
      }
    });
  }

  #forgetRun(run: RunId): void {
    this.#acted.delete(run);
    this.#ahead.delete(run);
    this.#liveAtMs.delete(run);
  }

  /** A suspect that denies by itself once its lease is over cannot act by anything old. */
  #counts({ run, state, onOutage }: Member): boolean {
    if (state !== 'suspect' || onOutage === 'serve') return true;
    return this.#options.steadyMs() - (this.#liveAtMs.get(run) ?? -Infinity) < LEASED_FOR_MS;
  }

  #confirm(waiting: Waiting, run: RunId): void {
    waiting.lacking.delete(run);
    this.#stopWaiting(waiting);
  }

  #stopWaiting(waiting: Waiting): void {
    if (waiting.awaited === 0) return;
    waiting.awaited -= 1;
    if (waiting.awaited === 0) waiting.done();
  }

  #lacks(run: RunId, seq: number): boolean {
    return (this.#acted.get(run) ?? 0) < seq;
  }
}
