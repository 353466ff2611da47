/** Gateways that share a log, with everything around them played: the same for the same seed. */
import type { AppliedEverywhere } from '../../../src/cluster/applied.ts';
import type { SharedLog } from '../../../src/cluster/log.ts';
import type { ClusterMessage, Member, Place, RunId } from '../../../src/ports/cluster.ts';
import type { Entry, LogAnswer, LogRow } from '../../../src/ports/cluster-log.ts';
import type { Accepted } from '../../../src/ports/sharing.ts';
import { type HeadRule, MOST_ROWS, ModelHead } from '../../support/model-log.ts';
import { randomOf } from '../../support/random.ts';
import { Gateway } from './gateway.ts';

/** The classes that are played: mutants bring their own. */
export type Code = { readonly SharedLog: typeof SharedLog; readonly AppliedEverywhere: typeof AppliedEverywhere };

const NAMES = ['one', 'two', 'three', 'four'];
const PROPOSED_WITHIN_MS = 1_000;
const ENDED_AFTER_MS = 7_500;
const SETTLED_EVERY = 400;
/** Servers fail in one era, and gateways are replaced in the next: somebody has to know what was lost. */
const ERA = 2 * SETTLED_EVERY;
const UNREACHABLE = { ok: false, fault: { kind: 'store_unreachable', retryAfterSecs: 1 } } as const;

type Request = {
  readonly gateway: Gateway;
  readonly execute: () => unknown;
  readonly resolve: (answer: never) => void;
};
type Sent = { readonly from: Gateway; readonly to: Gateway; readonly message: ClusterMessage };
type Row = Pick<LogRow, 'seq' | 'nonce' | 'mark'>;
type Tagged = { readonly tag?: number; readonly credential?: string };
const tagOf = (entry: Entry): number | undefined => (entry.body as Tagged | null)?.tag;

/** A broken invariant. */
export class Broken extends Error {}

export class World {
  nowMs = 0;
  head: ModelHead;
  /** Rows of each server, from its first on. */
  readonly rows = new Map<ModelHead, Row[]>();
  readonly gateways: Gateway[] = [];
  readonly counts: Record<string, number> = {};
  readonly #random: () => number;
  #standby: ModelHead;
  #requests: Request[] = [];
  /** Requests of callers that have given up. */
  #zombies: Request[] = [];
  #sent: Sent[] = [];
  #timers: { readonly atMs: number; readonly call: () => void }[] = [];
  #runs = 0;
  #tags = 0;
  #step = 0;
  #failedOverAt = 0;
  #defect: Broken | undefined;
  /** The expected state at each place. */
  readonly #expected = new Map<string, string>();
  /** When each was entered first, and where it was last entered. */
  readonly #enteredAt = new Map<number, number>();
  readonly #refused = new Set<number>();
  readonly #answered = new Map<number, { readonly key: string; readonly at: number }>();
  /** Expected versions that somebody was granted, since the last fail-over. */
  readonly #used = new Set<string>();
  readonly #open = new Set<number>();

  readonly code: Code;
  readonly seed: number;

  constructor(code: Code, seed: number, without?: HeadRule) {
    this.code = code;
    this.seed = seed;
    this.#random = randomOf(seed);
    this.head = new ModelHead(without);
    this.rows.set(this.head, [this.head.log[0]!]);
    this.#standby = this.#copied();
    this.#expect();
    for (const name of NAMES) this.#start(name);
  }

  static async play(code: Code, seed: number, steps: number, without?: HeadRule): Promise<World> {
    const world = new World(code, seed, without);
    for (let step = 0; step < steps; step += 1) await world.step();
    await world.#settle();
    return world;
  }

  noteDefect(error: unknown): void {
    this.#defect ??= error as Broken;
  }

  upTo(most: number): number {
    return Math.floor(this.#random() * (most + 1));
  }

  after(ms: number, call: () => void): () => void {
    const timer = { atMs: this.nowMs + ms, call };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((each) => each !== timer);
    };
  }

  send(from: Gateway, message: ClusterMessage): boolean {
    for (const to of this.gateways) if (to !== from) this.#sent.push({ from, to, message });
    return true;
  }

  ask<T>(gateway: Gateway, execute: () => T): Promise<T> {
    return new Promise((resolve) => this.#requests.push({ gateway, execute, resolve }));
  }

  members(): readonly Member[] {
    return this.gateways.flatMap((gateway): Member[] => {
      if (gateway.retiredAtMs !== undefined && this.nowMs - gateway.retiredAtMs > ENDED_AFTER_MS) return [];
      const state = gateway.retiredAtMs === undefined ? 'live' : 'retired';
      const applied = this.upTo(4) === 0 && !gateway.isGone ? gateway.log.acted : undefined;
      return [
        {
          ...{ run: gateway.run, name: `${gateway.name} ${gateway.run}`, state, version: '1', protocols: [1, 1] },
          ...{ leaseUntilMs: 0, skewMs: 0, policyVersion: undefined, auditHead: undefined, isOnBus: true },
          ...{ unconfirmed: 0, onOutage: 'serve', applied },
        },
      ];
    });
  }

  append(run: RunId, nonce: string, place: Place, groups: readonly (readonly Entry[])[]): LogAnswer {
    const before = this.head.head.seq;
    this.nowMs += 0.01; // no two rows are of the same time
    const answer = this.head.append(run, nonce, place, groups, MOST_ROWS, this.members(), this.nowMs);
    if (answer.lost || this.head.head.seq === before) return answer;
    this.rows.get(this.head)!.push(this.head.log.at(-1)!);
    const entered = this.head.log.at(-1)!.entries;
    for (const entry of entered) this.#noteEntered(entry);
    for (const entry of groups.flat()) if (!entered.includes(entry)) this.#judgeRefusal(entry);
    this.#expect();
    return answer;
  }

  /** Nothing is entered twice, and what is offered again takes the place of nothing newer. */
  #noteEntered(entry: Entry): void {
    const row = this.head.log.at(-1)!;
    if (entry.at !== undefined && this.#newestOf(entry, row.seq) >= entry.at)
      this.#broken(`${JSON.stringify(entry)} was offered again and has taken the place of something newer`);
    const tag = tagOf(entry);
    if (tag === undefined) return;
    const inLog = this.head.log.filter(({ entries }) =>
      entries.some((each) => each.id === entry.id && tagOf(each) === tag),
    );
    if (inLog.length > 1) this.#broken(`${entry.id} was entered twice`);
    // An entry that is offered again keeps its age; one that its proposer sends again is decided anew.
    if (entry.at !== undefined && entry.at > (this.#enteredAt.get(tag) ?? entry.at))
      this.#broken(`${JSON.stringify(entry)} says that it is newer than it is`);
    this.#enteredAt.set(tag, entry.at ?? row.atMs);
  }

  #judgeRefusal(entry: Entry): void {
    const tag = tagOf(entry);
    if (entry.at === undefined || tag === undefined) return;
    // The credential of an agent may be another's by now.
    if (entry.kind !== 'agents' && this.#newestOf(entry, this.head.head.seq) < entry.at)
      this.#broken(`${JSON.stringify(entry)} was refused when it was offered again`);
    this.#answered.delete(tag);
  }

  /** When its id was changed last before this row, counted from when that was entered first. */
  #newestOf({ kind, id }: Entry, before: number): number {
    const times = this.head.log.flatMap(({ seq, atMs, entries }) =>
      entries.flatMap((each) => (seq < before && each.kind === kind && each.id === id ? (each.at ?? atMs) : [])),
    );
    return Math.max(-1, ...times);
  }

  #expect(): void {
    const { seq, mark } = this.head.head;
    this.#expected.set(`${seq} ${mark}`, textOf([...this.head.state].map(([key, { entry }]) => [key, entry.body])));
  }

  #copied(): ModelHead {
    const copied = this.head.copy();
    this.rows.set(copied, [...this.rows.get(this.head)!]);
    return copied;
  }

  #start(name: string): void {
    this.#runs += 1;
    this.gateways.push(new Gateway(this, name, `run-${this.#runs}` as RunId));
  }

  async step(): Promise<void> {
    this.#step += 1;
    const roll = this.#random() * 100;
    const kinds = [
      [21, 'propose'],
      [35, 'serve'],
      [17, 'deliver'],
      [3, 'lose'],
      [10, 'wait'],
      [5, 'follow'],
      [3, 'suspend'],
      [0.5, 'replace'],
      [2, 'snapshot'],
      [2.5, 'fail over'],
      [0.8, 'trim'],
      [1.5, 'zombie'],
    ] as const;
    let sum = 0;
    const kind = kinds.find(([weight]) => (sum += weight) > roll)?.[1] ?? 'serve';
    if (this.#do(kind)) this.counts[kind] = (this.counts[kind] ?? 0) + 1;
    if (this.#step % SETTLED_EVERY === 0) await this.#settle();
    // Who has joined knows nothing of what came before.
    if (this.#step % ERA === 0) this.#standby = this.#copied();
    await turns();
    this.#check();
    if (this.#defect !== undefined) throw this.#defect;
  }

  #do(kind: string): boolean {
    switch (kind) {
      case 'propose': {
        const gateway = this.#pick();
        for (let more = this.upTo(5) === 0 ? 4 : 0; more > 0; more -= 1) this.#propose(gateway);
        return this.#propose(gateway);
      }
      case 'serve':
        return this.#serve(this.upTo(19));
      case 'deliver':
        return this.#deliver(this.upTo(this.#sent.length - 1));
      case 'lose':
        return this.#sent.splice(this.upTo(this.#sent.length - 1), 1).length > 0;
      case 'wait':
        this.#wait(this.upTo(300));
        return true;
      case 'follow': {
        const gateway = this.#pick();
        void gateway.log.follow();
        gateway.everywhere.noteMembers(this.members());
        return true;
      }
      case 'suspend':
        return this.#toggle(this.#pick());
      case 'replace':
        return this.#replace();
      case 'snapshot':
        this.#standby = this.#copied();
        return true;
      case 'fail over':
        return this.#failOver();
      case 'trim':
        return this.#trim();
      default:
        return this.#zombies.splice(0, 1).map(({ execute }) => execute()).length > 0;
    }
  }

  #pick(): Gateway {
    return this.gateways[this.upTo(this.gateways.length - 1)]!;
  }

  #propose(gateway: Gateway): boolean {
    if (gateway.isSuspended || gateway.retiredAtMs !== undefined) return false;
    this.#tags += 1;
    const tag = this.#tags;
    const entries = this.#entriesOf(gateway, tag);
    this.#open.add(tag);
    gateway.log.propose({
      entries,
      withinMs: PROPOSED_WITHIN_MS,
      accepted: (accepted) => {
        void gateway.everywhere
          .pass(accepted)
          .then((names) => this.#answer(tag, entries, accepted, names))
          .catch(() => undefined);
      },
      refused: () => {
        this.#open.delete(tag);
        this.#refused.add(tag);
      },
      failed: () => this.#open.delete(tag),
    });
    return true;
  }

  #nonceOf(tag: number): string | undefined {
    return this.head.log.findLast(({ entries }) => entries.some((each) => tagOf(each) === tag))?.nonce;
  }

  #entriesOf({ log }: Gateway, tag: number): readonly Entry[] {
    const id = `${this.upTo(7)}`;
    switch (this.upTo(4)) {
      case 0: {
        const body = {
          identity: { orgId: '', teamId: '', agentId: id },
          credential: `c${this.upTo(9)}`,
          registeredAtMs: 0,
          tag,
        };
        return [{ kind: 'agents', id, body: this.upTo(5) === 0 ? null : body }];
      }
      case 1:
        return [{ kind: 'approvals', id, body: { tag }, expects: log.versionOf('approvals', id) }];
      case 2: {
        const other = `${id}-more`;
        const one = { kind: 'halts', id, body: { tag }, expects: log.versionOf('halts', id) } as const;
        if (this.upTo(3) === 0) return [one];
        return [one, { kind: 'halts', id: other, body: { tag }, expects: log.versionOf('halts', other) }];
      }
      case 3:
        return [{ kind: 'notice', id: 'api-keys', body: { tag } }];
      default:
        return [{ kind: 'orders', id: `${this.upTo(1)}`, body: { tag } }];
    }
  }

  /** A change was answered: everybody who took part and is not named acts by it. */
  #answer(tag: number, entries: readonly Entry[], { members }: Accepted, names: readonly string[]): void {
    this.#open.delete(tag);
    const nonce = this.#nonceOf(tag);
    if (nonce === undefined) return; // lost with a server, or something newer has taken its place since
    for (const { run, name } of members) {
      const gateway = this.gateways.find((each) => each.run === run);
      if (gateway === undefined || gateway.isGone || names.includes(name)) continue;
      if (!gateway.actsBy(nonce)) this.#broken(`${name} does not act by ${tag}, and is not named`);
    }
    const at = this.#enteredAt.get(tag);
    for (const { kind, id, expects } of entries) {
      if (at !== undefined && kind !== 'notice') this.#answered.set(tag, { key: `${kind} ${id}`, at });
      if (expects === undefined || this.#failedOverAt > this.#step - SETTLED_EVERY) continue;
      const use = `${this.#failedOverAt} ${kind} ${id} ${expects}`;
      if (this.#used.has(use)) this.#broken(`version ${expects} of ${kind} ${id} was changed twice`);
      this.#used.add(use);
    }
  }

  /** Most requests are done and answered; some are lost before, some after, and some are done later. */
  #serve(roll: number): boolean {
    const request = this.#requests.splice(this.upTo(this.#requests.length - 1), 1)[0];
    if (request === undefined) return false;
    const { gateway, execute, resolve } = request;
    const answer = (value: unknown): void => gateway.whenAwake(() => resolve(value as never));
    if (roll === 0) answer(UNREACHABLE);
    else if (roll === 1) execute(), answer(UNREACHABLE);
    else if (roll === 2) this.#zombies.push(request), answer(UNREACHABLE);
    else answer(execute());
    return true;
  }

  #deliver(at: number): boolean {
    const sent = this.#sent.splice(at, 1)[0];
    if (sent === undefined) return false;
    const { from, to, message } = sent;
    to.whenAwake(() => {
      for (const listener of to.listeners) listener(from.run, message);
      if (message.type === 'appended' && message.seq > to.log.applied) void to.log.follow();
    });
    return true;
  }

  #wait(ms: number): void {
    const untilMs = this.nowMs + ms;
    for (;;) {
      const due = this.#timers.filter(({ atMs }) => atMs <= untilMs).sort((one, other) => one.atMs - other.atMs)[0];
      if (due === undefined) break;
      this.#timers.splice(this.#timers.indexOf(due), 1);
      this.nowMs = Math.max(this.nowMs, due.atMs);
      due.call();
    }
    this.nowMs = untilMs;
  }

  #toggle(gateway: Gateway): boolean {
    gateway.isSuspended = !gateway.isSuspended;
    if (!gateway.isSuspended) for (const call of gateway.held.splice(0)) call();
    return true;
  }

  /** Another run takes the name; the one before goes on for a while, and may not know. */
  #replace(): boolean {
    if (!this.#isEraOfGateways) return false;
    const before = this.gateways.filter(({ retiredAtMs }) => retiredAtMs === undefined)[this.upTo(NAMES.length - 1)];
    if (before === undefined) return false;
    before.retiredAtMs = this.nowMs;
    this.#start(before.name);
    return true;
  }

  /** Rows are kept for longer than a server that takes over may lag behind. */
  #trim(): boolean {
    if (!this.#isEraOfGateways) return false;
    this.head.trim(this.head.head.seq - this.upTo(20));
    this.#standby = this.#copied();
    return true;
  }

  get #isEraOfGateways(): boolean {
    return Math.floor((this.#step - 1) / ERA) % 2 === 1;
  }

  #failOver(): boolean {
    if (this.#isEraOfGateways) return false;
    if (this.gateways.some(({ log }) => this.head.after(log.place, 0, []).lost)) return false; // one after the other
    if (this.#standby.head.seq === this.head.head.seq) return false;
    this.head = this.#standby;
    this.#standby = this.#copied();
    this.#failedOverAt = this.#step;
    this.#zombies = []; // they were requests to the other server
    return true;
  }

  /** Everything is reached again, and all that is under way ends. */
  async #settle(): Promise<void> {
    for (const gateway of this.gateways) if (gateway.isSuspended) this.#toggle(gateway);
    for (let quiet = 0, nth = 0; quiet < 60; nth += 1) {
      if (nth > 5_000) this.#broken('it does not come to rest');
      const isBusy = this.#requests.length > 0 || this.#sent.length > 0;
      for (let served = 0; this.#requests.length > 0; served += 1) {
        if (served > 5_000) this.#broken('it asks for ever');
        this.#serve(3);
        await turns();
      }
      while (this.#deliver(0));
      for (const gateway of this.gateways) if (nth % 10 === 0 && !gateway.isGone) void gateway.log.follow();
      this.#wait(100);
      await turns();
      quiet = isBusy && nth % 10 !== 1 ? 0 : quiet + 1;
    }
    this.#end();
    this.#checkAll();
  }

  /** Replaced runs end. */
  #end(): void {
    for (const gateway of this.gateways) {
      if (gateway.retiredAtMs === undefined || this.nowMs - gateway.retiredAtMs < ENDED_AFTER_MS) continue;
      gateway.isGone = true;
      gateway.log.stop();
    }
    const gone = this.gateways.filter(({ isGone }) => isGone);
    for (const gateway of gone) this.gateways.splice(this.gateways.indexOf(gateway), 1);
    this.#sent = this.#sent.filter(({ to }) => !to.isGone);
    this.#requests = this.#requests.filter(({ gateway }) => !gateway.isGone);
  }

  #check(): void {
    for (const gateway of this.gateways) {
      const { seq, mark } = gateway.log.place;
      const at = `${seq} ${mark}`;
      if (gateway.checkedAt === at) continue;
      gateway.checkedAt = at;
      const expected = this.#expected.get(at);
      const text = textOf([...gateway.state]);
      if (expected === undefined) this.#broken(`${gateway.name} is at a place that no server had`);
      if (text !== expected) this.#broken(`${gateway.name} has not what the log says\n${text}\n${expected}`);
      const credentials = new Set<string>();
      for (const body of gateway.state.values()) {
        const { tag, credential } = body as Tagged;
        if (tag !== undefined && this.#refused.has(tag)) this.#broken(`${tag} was refused, and is applied`);
        if (credential === undefined) continue;
        if (credentials.has(credential)) this.#broken(`two agents have ${credential}`);
        credentials.add(credential);
      }
    }
  }

  #checkAll(): void {
    for (const gateway of this.gateways) gateway.checkedAt = '';
    this.#check();
    for (const { name, log, retiredAtMs } of this.gateways)
      if (retiredAtMs === undefined && log.acted.seq !== this.head.head.seq)
        this.#broken(`${name} lags behind: ${log.acted.seq} of ${log.applied}, head ${this.head.head.seq}`);
    if (this.#open.size > 0) this.#broken(`${[...this.#open].join()} have no answer`);
    for (const [tag, { key, at }] of this.#answered) {
      const known = this.head.state.get(key)?.entry;
      const newest = known === undefined ? undefined : this.#enteredAt.get(tagOf(known) ?? -1);
      // An entry that was removed since has nothing to compare with.
      if (known === undefined ? !key.startsWith('agents') : (newest ?? 0) < at)
        this.#broken(`${tag} of ${key} is gone: ${JSON.stringify(this.head.state.get(key))}`);
    }
    this.#answered.clear();
    this.#refused.clear();
  }

  /** Thrown also where a promise would swallow it: see `step`. */
  #broken(what: string): never {
    this.#defect ??= new Broken(`seed ${this.seed}, step ${this.#step}: ${what}`);
    throw this.#defect;
  }
}

/** Until nothing more happens by itself. */
const turns = async (): Promise<void> => {
  for (let nth = 0; nth < 3; nth += 1) await new Promise((resolve) => setImmediate(resolve));
};

const textOf = (pairs: readonly (readonly [string, unknown])[]): string =>
  JSON.stringify(pairs.toSorted(([one], [other]) => (one < other ? -1 : 1)));
