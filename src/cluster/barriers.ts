import type {
  Barrier,
  Bus,
  ClusterMessage,
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

type Waiting = {
  readonly missing: Set<RunId>;
  readonly done: () => void;
  readonly onSaid: PassOptions['onSaid'];
};

/**
 * Barriers between gateways: what was committed is acted by everywhere when `pass` resolves, but for the gateways that
 * it names. They find it in the database when they reach it again.
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
    const { bus, membership } = this.#options;
    // A suspect that denies by itself once its lease is over cannot act by anything old.
    const others = membership
      .others()
      .filter(
        ({ name, state, onOutage }) =>
          (state === 'live' || onOutage === 'serve') && options.without?.includes(name) !== true,
      );
    if (others.length === 0) return [];
    this.#lastId += 1;
    const id = this.#lastId;
    const missing = new Set(others.map(({ run }) => run));
    if (bus.send('all', { type: 'barrier', id, topic, detail })) await this.#confirmed(id, missing, options);
    const names = others.filter(({ run }) => missing.has(run)).map(({ name }) => name);
    if (names.length > 0) this.#note([...missing]);
    return names;
  }

  /** Resolves when all live ones have confirmed: suspects most likely cannot, so nobody waits for them. */
  #confirmed(id: number, missing: Set<RunId>, { withinMs = CONFIRM_WITHIN_MS, onSaid }: PassOptions): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(id);
        resolve();
      };
      const timer = setTimeout(done, withinMs);
      this.#waiting.set(id, { missing, done, onSaid });
      this.#recount();
    });
  }

  #recount(): void {
    const others = this.#options.membership.others();
    for (const { missing, done } of this.#waiting.values()) {
      // One that was replaced meanwhile has ended, and its successor has read what is written.
      for (const run of missing) if (!others.some((other) => other.run === run)) missing.delete(run);
      if (!others.some(({ run, state }) => state === 'live' && missing.has(run))) done();
    }
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
        if (waiting?.missing.delete(from) !== true) return;
        if (message.said !== undefined) waiting.onSaid?.(message.said);
        return this.#recount();
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
