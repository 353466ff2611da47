import { createHash } from 'node:crypto';
import { Replicas } from '../../src/cluster/replicas.ts';
import type { Bus, ClusterMessage, Member, Membership, RunId } from '../../src/ports/cluster.ts';
import type { Clock } from '../../src/ports/ports.ts';

type Sent = { readonly from: RunId; readonly to: RunId | 'all'; readonly message: ClusterMessage };
type Listener = (from: RunId, message: ClusterMessage) => void;

/** A gateway of a cluster without processes, database or network. */
export type FakeMember = {
  readonly run: RunId;
  readonly bus: Bus & { isConnected: boolean };
  readonly membership: Membership & { isLeased: boolean };
  /** The time of the database as this gateway knows it, ahead of it by so much. */
  readonly clock: Clock & { aheadMs: number };
  /** Reads again after possible losses. */
  readonly gap: () => void;
  /** As this gateway sees the others, from now on. */
  readonly see: (others: readonly Member[]) => void;
};

/**
 * A bus between gateways of one process. Messages wait until they are delivered, so that a test chooses which are late,
 * lost, or delivered twice.
 */
export class FakeCluster {
  readonly waiting: Sent[] = [];
  readonly #listeners = new Map<RunId, Listener[]>();
  readonly #members = new Map<RunId, { readonly member: Member; readonly fake: FakeMember }>();
  readonly replicas = new Replicas((error) => {
    throw error;
  });

  join(name: string, state: Member['state'] = 'live'): FakeMember {
    const run = runOf(name);
    const fake = this.#fakeOf(run, name);
    this.#members.set(run, { member: memberOf(run, name, state), fake });
    this.#announce();
    return fake;
  }

  /** Everybody knows that this run has ended, but the run itself. */
  retire(name: string): void {
    this.#members.delete(runOf(name));
    this.#announce();
  }

  suspect(name: string): void {
    const run = runOf(name);
    const known = this.#members.get(run)!;
    this.#members.set(run, { ...known, member: { ...known.member, state: 'suspect' } });
    this.#announce();
  }

  /** Takes what waits, to be delivered by the test, or lost. */
  take(): Sent[] {
    return this.waiting.splice(0);
  }

  deliver({ from, to, message }: Sent): void {
    // As plain data: what does not survive JSON is lost here too.
    const plain = JSON.parse(JSON.stringify(message)) as ClusterMessage;
    for (const [run, listeners] of this.#listeners)
      if (run !== from && (to === 'all' || to === run)) for (const listener of listeners) listener(from, plain);
  }

  /** Delivers all that is sent until nothing is any more. */
  async settle(): Promise<void> {
    for (let quiet = 0; quiet < 3; quiet = this.waiting.length === 0 ? quiet + 1 : 0) {
      for (const sent of this.take()) this.deliver(sent);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  #announce(): void {
    const members = [...this.#members.values()].map(({ member }) => member);
    for (const [run, { fake }] of this.#members) fake.see(members.filter((member) => member.run !== run));
  }

  #fakeOf(run: RunId, name: string): FakeMember {
    const gaps: (() => void)[] = [];
    const changes: (() => void)[] = [];
    const listeners: Listener[] = [];
    this.#listeners.set(run, listeners);
    let others: readonly Member[] = [];
    const bus = {
      isConnected: true,
      send: (to: RunId | 'all', message: ClusterMessage) => {
        if (bus.isConnected) this.waiting.push({ from: run, to, message });
        return bus.isConnected;
      },
      onMessage: (listener: Listener) => void listeners.push(listener),
      onGap: (listener: () => void) => void gaps.push(listener),
    };
    const clock = { aheadMs: 0, nowMs: () => Date.now() + clock.aheadMs };
    const membership = {
      self: run,
      name,
      isLeased: true,
      unreachedMs: 0,
      others: () => others.filter(({ state }) => state !== 'retired'),
      onChange: (listener: () => void) => void changes.push(listener),
      lookAgain: async () => true,
    };
    return {
      run,
      bus,
      membership,
      clock,
      gap: () => gaps.forEach((listener) => listener()),
      see: (seen) => {
        others = seen;
        for (const listener of changes) listener();
      },
    };
  }
}

const runOf = (name: string): RunId => {
  const digits = createHash('sha256').update(name).digest('hex');
  return [8, 4, 4, 4, 12].map((length, at) => digits.slice(at * 12, at * 12 + length)).join('-') as RunId;
};

const memberOf = (run: RunId, name: string, state: Member['state']): Member => ({
  run,
  name,
  state,
  version: '0.0.0',
  protocols: [1, 1],
  leaseUntilMs: 0,
  skewMs: 0,
  policyVersion: undefined,
  auditHead: undefined,
  unconfirmed: 0,
  isOnBus: true,
  onOutage: 'serve',
  applied: undefined,
});
