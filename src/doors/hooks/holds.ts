/** Answers that are held back while an operation is paused. */
import { agentKeyOf, type OpId } from '../../core/base/ids.ts';
import { CallerQuota } from '../../limits/fair-queue.ts';
import { voucherPrincipal } from '../rpc/bearer.ts';
import type { ControlSwitch } from '../rpc/control-switch.ts';
import type { Caller } from '../rpc/handle.ts';
import type { WirePorts } from '../rpc/ports.ts';
import { controlOf } from '../rpc/requests.ts';
import type { Speaker } from '../rpc/speaker.ts';

/** Held calls of one thread, half of them of one org. Beyond it, a paused call is denied at once. */
const MAX_HELD = 1_000;
/** How often a held answer looks whether somebody still waits for it. */
const LOOK_EVERY_MS = 1_000;

/** Why a hold is over: the operation was touched, or nobody may or can wait any longer. */
export type EndOfHold = 'signal' | 'over';

type Held = { readonly speaker: Speaker; readonly opId: OpId; readonly caller: Caller };
/** Waits for the next signal, at most until then. */
type Next = (deadlineMs: number) => Promise<EndOfHold>;
type Use<T> = (next: Next) => Promise<T>;

const OVER: Next = async () => 'over';

export class Holds {
  readonly #control: ControlSwitch;
  readonly #ends = new Set<() => void>();
  readonly #most: number;
  readonly #quota: CallerQuota;
  #isDraining = false;

  constructor(control: ControlSwitch, most = MAX_HELD) {
    this.#control = control;
    this.#most = most;
    this.#quota = new CallerQuota(most);
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
    const { orgId } = held.speaker.agent;
    if (this.#isDraining || this.#ends.size >= this.#most || !this.#quota.tryAcquire(orgId)) return use(OVER);
    try {
      return await this.#listen(ports, held, use);
    } finally {
      this.#quota.release(orgId);
    }
  }

  async #listen<T>(ports: WirePorts, { speaker, opId, caller }: Held, use: Use<T>): Promise<T> {
    const request = { agent: speaker.agent, credentialToken: speaker.credentialToken, resumeAfter: undefined };
    const principal = await voucherPrincipal(ports, speaker.credentialToken, speaker.authorization);
    const command = principal.ok ? controlOf(request, principal.value) : principal;
    if (!command.ok || !principal.ok) return use(OVER);
    const bell = new Bell();
    const end = (): void => bell.ring('over');
    this.#ends.add(end);
    const stream = this.#control.open({
      agent: agentKeyOf(command.value.agent),
      subject: principal.value?.subject,
      signal: (message) => {
        if (message.opId === opId) bell.ring('signal');
      },
      close: end,
    });
    const watch = setInterval(() => {
      if (caller.cancelled) end();
    }, LOOK_EVERY_MS);
    try {
      const { reply } = await ports.link.ask({ ...command.value, stream });
      return await use(reply.ok ? (deadlineMs) => bell.next(deadlineMs) : OVER);
    } finally {
      clearInterval(watch);
      this.#control.close(stream);
      this.#ends.delete(end);
    }
  }
}

/** Keeps a ring until somebody asks for it. That it is over stays so. */
class Bell {
  #rung: EndOfHold | undefined;
  #wake: (() => void) | undefined;

  ring(what: EndOfHold): void {
    if (this.#rung !== 'over') this.#rung = what;
    this.#wake?.();
  }

  async next(deadlineMs: number): Promise<EndOfHold> {
    if (this.#rung === undefined) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.max(0, deadlineMs - performance.now()));
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.#wake = undefined;
    }
    const rung = this.#rung ?? 'over';
    if (rung === 'signal') this.#rung = undefined;
    return rung;
  }
}
