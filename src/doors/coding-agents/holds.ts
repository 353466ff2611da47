/** Answers that are held back while an operation is paused, or people decide. */
import { agentKeyOf, type OpId } from '../../core/base/ids.ts';
import { CallerQuota } from '../../fairness/fair-queue.ts';
import type { ControlSwitch } from '../rpc/control-switch.ts';
import { whenGone } from '../rpc/departure.ts';
import type { Caller } from '../rpc/handle.ts';
import type { WirePorts } from '../rpc/ports.ts';
import type { Vouch, Vouched } from '../rpc/speaker.ts';

/** Limits of one thread; one org may take half. Beyond them, a call that would be held is denied at once. */
const MOST = { calls: 1_000, bytes: 16 * 1024 * 1024 };

/** Why a hold is over: the operation was touched, or nobody may or can wait any longer. */
export type EndOfHold = 'signal' | 'over';

type Held = {
  readonly speaker: Vouched;
  readonly vouch: Vouch;
  readonly opId: OpId;
  readonly caller: Caller;
  /** Approximate size of the request data to keep. */
  readonly bytes: number;
};
/** Waits for the next signal, at most until then. */
type Next = (deadlineMs: number) => Promise<EndOfHold>;
type Use<T> = (next: Next) => Promise<T>;

const OVER: Next = async () => 'over';

export class Holds {
  readonly #control: ControlSwitch;
  readonly #ends = new Set<() => void>();
  readonly #most: typeof MOST;
  readonly #calls: CallerQuota;
  readonly #bytes: CallerQuota;
  #bytesHeld = 0;
  #isDraining = false;

  constructor(control: ControlSwitch, most = MOST) {
    this.#control = control;
    this.#most = most;
    this.#calls = new CallerQuota(most.calls);
    this.#bytes = new CallerQuota(most.bytes);
  }

  /** How many answers are held. */
  get size(): number {
    return this.#ends.size;
  }

  /** Ends all holds, and lets none begin. */
  drain(): void {
    this.#isDraining = true;
    for (const end of [...this.#ends]) end();
  }

  /**
   * Listens for signals to an operation until `use` is done with them. It listens before `use` looks at the operation,
   * so that no signal is missed in between.
   */
  async with<T>(ports: WirePorts, held: Held, use: Use<T>): Promise<T> {
    const notifier = new Notifier();
    const leave = this.take(held, () => notifier.notify('over'));
    if (leave === undefined) return use(OVER);
    try {
      return await this.#listen(ports, held, notifier, use);
    } finally {
      leave();
    }
  }

  /** A place for one held call, given back by what is returned; undefined: there is none. `end` ends the hold. */
  take({ speaker, bytes }: Pick<Held, 'speaker' | 'bytes'>, end: () => void): (() => void) | undefined {
    const { orgId } = speaker.agent;
    const { calls, bytes: mostBytes } = this.#most;
    if (this.#isDraining || this.#ends.size >= calls || this.#bytesHeld + bytes > mostBytes) return undefined;
    if (!this.#calls.tryAcquire(orgId)) return undefined;
    if (!this.#bytes.tryAcquire(orgId, bytes)) {
      this.#calls.release(orgId);
      return undefined;
    }
    this.#bytesHeld += bytes;
    this.#ends.add(end);
    return () => {
      this.#ends.delete(end);
      this.#bytesHeld -= bytes;
      this.#bytes.release(orgId, bytes);
      this.#calls.release(orgId);
    };
  }

  async #listen<T>(ports: WirePorts, { vouch, opId, caller }: Held, notifier: Notifier, use: Use<T>): Promise<T> {
    const speaker = await vouch();
    if (!speaker.ok) return use(OVER);
    const end = (): void => notifier.notify('over');
    const stream = this.#control.open({
      agent: agentKeyOf(speaker.value.agent),
      subject: speaker.value.principal?.subject,
      signal: (message) => {
        if (message.opId === opId) notifier.notify('signal');
      },
      close: end,
    });
    const unwatch = whenGone(caller, end);
    try {
      const { reply } = await ports.link.ask({ type: 'open-control', ...speaker.value, stream });
      return await use(reply.ok ? (deadlineMs) => notifier.next(deadlineMs) : OVER);
    } finally {
      unwatch();
      this.#control.close(stream);
    }
  }
}

/** Keeps a notice until somebody asks for it. That it is over stays so. */
class Notifier {
  #pending: EndOfHold | undefined;
  #wake: (() => void) | undefined;

  notify(what: EndOfHold): void {
    if (this.#pending !== 'over') this.#pending = what;
    this.#wake?.();
  }

  async next(deadlineMs: number): Promise<EndOfHold> {
    if (this.#pending === undefined) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.max(0, deadlineMs - performance.now()));
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.#wake = undefined;
    }
    const ended = this.#pending ?? 'over';
    if (ended === 'signal') this.#pending = undefined;
    return ended;
  }
}
