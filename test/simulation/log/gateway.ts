/** A gateway of the simulation: the real log and barrier, over a world that is played. */
import type { AppliedEverywhere } from '../../../src/cluster/applied.ts';
import type { Acting, SharedLog, SharedLogOptions } from '../../../src/cluster/log.ts';
import type { Bus, ClusterMessage, Member, RunId } from '../../../src/ports/cluster.ts';
import type { Entry, LogRow, Whole } from '../../../src/ports/cluster-log.ts';
import { MOST_ROWS } from '../../support/model-log.ts';
import type { World } from './world.ts';

export class Gateway {
  readonly log: SharedLog;
  readonly everywhere: AppliedEverywhere;
  readonly state = new Map<string, unknown>();
  isSuspended = false;
  isGone = false;
  retiredAtMs: number | undefined;
  /** Applied rows by their nonces: how much of each is not acted by yet. */
  #acting = new Map<string, number>();
  readonly held: (() => void)[] = [];
  readonly listeners: ((from: RunId, message: ClusterMessage) => void)[] = [];
  checkedAt = '';

  readonly world: World;
  readonly name: string;
  readonly run: RunId;

  constructor(world: World, name: string, run: RunId) {
    this.world = world;
    this.name = name;
    this.run = run;
    const bus: Bus = {
      isConnected: true,
      send: (_, message) => world.send(this, message),
      onMessage: (listener) => void this.listeners.push(listener),
      onGap: () => undefined,
    };
    this.everywhere = new world.code.AppliedEverywhere({
      self: run,
      bus,
      store: { noteUnconfirmed: async () => ({ ok: true, value: undefined }) },
      isSame: (place) => this.log.isSame(place),
      steadyMs: () => world.nowMs,
      after: (ms, call) => world.after(ms, () => this.whenAwake(call)),
    });
    this.log = new world.code.SharedLog(this.#options(), world.head.whole());
    this.#restore(world.head.whole());
    this.everywhere.say(this.log.place);
  }

  /** Runs the call now, or once this process goes on. */
  whenAwake(call: () => void): void {
    if (this.isGone) return;
    if (this.isSuspended) this.held.push(call);
    else call();
  }

  #options(): SharedLogOptions {
    const { world } = this;
    const ask = <T>(execute: () => T): Promise<T> => world.ask(this, execute);
    const members = (): readonly Member[] => world.members();
    return {
      store: {
        append: (nonce, place, groups) =>
          ask(() => {
            if (this.retiredAtMs !== undefined) return { ok: false, fault: { kind: 'replaced' } };
            return { ok: true, value: world.append(this.run, nonce, place, groups) };
          }) as never,
        after: (place) => ask(() => ({ ok: true, value: world.head.after(place, MOST_ROWS, members()) })),
        placesAfter: (seq) => ask(() => ({ ok: true, value: world.head.placesAfter(seq) })),
        whole: () => ask(() => ({ ok: true, value: world.head.whole() })),
      },
      follower: {
        apply: (entry, row) => this.#apply(entry, row),
        restore: (whole) => (this.#restore(whole), undefined),
      },
      steadyMs: () => world.nowMs,
      sleep: (ms) => new Promise((resolve) => world.after(ms, () => this.whenAwake(() => resolve(undefined)))),
      onActed: (place) => this.everywhere.say(place),
      onRestored: (place) => this.everywhere.forget(place),
      onAppended: (seq) => world.send(this, { type: 'appended', seq }),
      onError: (error) => world.noteDefect(error),
    };
  }

  actsBy(nonce: string): boolean {
    return this.#acting.get(nonce) === 0;
  }

  #apply(entry: Entry, { nonce }: LogRow): Acting | undefined {
    const key = `${entry.kind} ${entry.id}`;
    if (!this.#acting.has(nonce)) this.#acting.set(nonce, 0);
    if (entry.kind === 'notice') return this.#actLater(nonce);
    if (entry.body === null) this.state.delete(key);
    else this.state.set(key, entry.body);
    return entry.kind === 'halts' ? this.#actLater(nonce) : undefined;
  }

  /** Threads take a moment, and sometimes fail. */
  #actLater(nonce: string): Acting {
    // Rows that were read whole since take its place.
    const acting = this.#acting;
    const left = (more: number): void => void acting.set(nonce, (acting.get(nonce) ?? 0) + more);
    left(1);
    return async () => {
      await new Promise((resolve) =>
        this.world.after(this.world.upTo(40), () => this.whenAwake(() => resolve(undefined))),
      );
      if (this.world.upTo(9) === 0) return false;
      left(-1);
      return true;
    };
  }

  #restore({ agents, states, place }: Whole): void {
    this.state.clear();
    for (const agent of agents) this.state.set(`agents ${agent.identity.agentId}`, agent);
    for (const { kind, id, body } of states) this.state.set(`${kind} ${id}`, body);
    // Rows of the server that this was read from.
    const read = [...this.world.rows.values()].find((rows) => rows.some(({ mark }) => mark === place.mark)) ?? [];
    this.#acting = new Map(read.flatMap(({ seq, nonce }) => (seq <= place.seq ? [[nonce, 0]] : [])));
  }
}
