import type {
  Barrier,
  Bus,
  ClusterMessage,
  Member,
  MemberStore,
  Membership,
  PassOptions,
  RunId,
  Topic,
} from '../ports/cluster.ts';
import type { Replicas } from './replicas.ts';

export type BarriersOptions = {
  readonly bus: Bus;
  readonly membership: Membership;
  readonly store: Pick<MemberStore, 'noteUnconfirmed'>;
  readonly replicas: Replicas;
  /** Resolves when every I/O thread acts by what it was sent before. */
  readonly inAllThreads: () => Promise<void>;
};

const CONFIRM_WITHIN_MS = 1_000;

/** Named as if it were a gateway where it could not be asked who takes part. */
const DATABASE = 'database';

type Waiting = {
  readonly concerns: (member: Member) => boolean;
  readonly confirmed: Set<RunId>;
  /** Who is to confirm; undefined until it was asked who takes part. */
  awaited: readonly Member[] | undefined;
  /** Live ones among them that have not confirmed. */
  readonly lacking: Set<RunId>;
  /** Whether the database has said so. */
  isKnown: boolean;
  readonly done: () => void;
  readonly onSaid: PassOptions['onSaid'];
};

/**
 * Barriers between gateways: what was committed is acted by everywhere when `pass` resolves, but for the gateways that
 * it names. They find it in the database when they reach it again.
 *
 * Who takes part is read after the commit: a gateway that joined before is waited for, and one that joins later reads
 * what was committed before it serves. What this gateway has last heard may be older, as when its beats are slow.
 */
export class Barriers implements Barrier {
  readonly #options: BarriersOptions;
  readonly #waiting = new Map<number, Waiting>();
  /** Not confirmed by somebody, since the start: for the metrics. */
  unconfirmed = 0;
  #lastId = 0;

  constructor(options: BarriersOptions) {
    this.#options = options;
    const { bus, membership, replicas } = options;
    bus.onMessage((from, message) => this.#receive(from, message));
    bus.onGap(() => void replicas.refreshAll());
    membership.onChange(() => this.#recount());
  }

  async pass(topic: Topic, detail?: unknown, options: PassOptions = {}): Promise<readonly string[]> {
    const { bus } = this.#options;
    this.#lastId += 1;
    const id = this.#lastId;
    const isSent = bus.send('all', { type: 'barrier', id, topic, detail });
    const { confirmed, awaited, isKnown, concerns } = await this.#confirmed(id, isSent, options);
    const missing = (awaited ?? this.#everybody().filter(concerns)).filter(({ run }) => !confirmed.has(run));
    if (missing.length > 0) this.#note(missing.map(({ run }) => run));
    const names = missing.map(({ name }) => name);
    return isKnown ? names : [...names, DATABASE];
  }

  /** Resolves when all live ones have confirmed: suspects most likely cannot, so nobody waits for them. */
  #confirmed(id: number, isSent: boolean, options: PassOptions): Promise<Waiting> {
    const { withinMs = CONFIRM_WITHIN_MS, onSaid, without = [] } = options;
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(id);
        resolve(waiting);
      };
      const timer = setTimeout(done, withinMs);
      const waiting: Waiting = {
        // A suspect that denies by itself once its lease is over cannot act by anything old.
        concerns: ({ name, state, onOutage }) =>
          (state !== 'suspect' || onOutage === 'serve') && !without.includes(name),
        confirmed: new Set(),
        awaited: undefined,
        lacking: new Set(),
        isKnown: false,
        done,
        onSaid,
      };
      this.#waiting.set(id, waiting);
      void this.#lookFor(waiting).then(() => {
        if (!isSent) return done();
        this.#count(waiting, new Map(this.#everybody().map((member) => [member.run, member])));
      });
    });
  }

  async #lookFor(waiting: Waiting): Promise<void> {
    const { membership } = this.#options;
    waiting.isKnown = await membership.lookAgain();
    waiting.awaited = this.#everybody().filter(waiting.concerns);
  }

  /** Also who was replaced, or forgotten, and may not have ended. */
  #everybody(): readonly Member[] {
    const { membership } = this.#options;
    return [...membership.others(), ...membership.leavers()];
  }

  /** Only when it is another who takes part: a confirmation costs one barrier, however many are under way. */
  #recount(): void {
    const members = new Map(this.#everybody().map((member) => [member.run, member]));
    for (const waiting of this.#waiting.values()) this.#count(waiting, members);
  }

  #count(waiting: Waiting, members: ReadonlyMap<RunId, Member>): void {
    if (waiting.awaited === undefined) return;
    // One that is gone meanwhile has ended, and its successor has read what is written.
    waiting.awaited = waiting.awaited.filter(({ run }) => members.has(run));
    waiting.lacking.clear();
    for (const { run } of waiting.awaited)
      if (members.get(run)?.state === 'live' && !waiting.confirmed.has(run)) waiting.lacking.add(run);
    if (waiting.lacking.size === 0) waiting.done();
  }

  #note(runs: readonly RunId[]): void {
    this.unconfirmed += 1;
    // Where the database cannot be reached either, `svc cluster ls` shows that they are suspect.
    void this.#options.store.noteUnconfirmed(runs);
  }

  #receive(from: RunId, message: ClusterMessage): void {
    switch (message.type) {
      case 'barrier':
        return void this.#actBy(from, message);
      case 'changed':
        return void this.#options.replicas.refresh(message.topic, message.detail);
      case 'confirm': {
        const waiting = this.#waiting.get(message.id);
        if (waiting === undefined || waiting.confirmed.has(from)) return;
        waiting.confirmed.add(from);
        if (message.said !== undefined) waiting.onSaid?.(message.said);
        if (waiting.lacking.delete(from) && waiting.lacking.size === 0) waiting.done();
        return;
      }
      default:
    }
  }

  async #actBy(from: RunId, { id, topic, detail }: Extract<ClusterMessage, { type: 'barrier' }>): Promise<void> {
    const { bus, replicas, inAllThreads } = this.#options;
    const acted = await replicas.refresh(topic, detail);
    if (!acted.ok) return; // not confirmed: it is named, and follows when it reaches the database
    await inAllThreads();
    bus.send(from, { type: 'confirm', id, said: acted.value });
  }
}
