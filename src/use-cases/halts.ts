import { ok, type Result } from '../core/base/result.ts';
import type { CommandOf, CommandType, Replies } from '../core/commands.ts';
import type { Fault } from '../core/fault.ts';
import { GATEWAY } from '../core/halts/commands.ts';
import type { Halt } from '../core/halts/halt.ts';
import type { Principal } from '../core/identity/roles.ts';
import { type Stopwatch, TimedSlices } from '../limits/timed-slices.ts';

export type NewHalt = CommandOf<'create-halt'>['halt'];
/** The halt, and how many operations it stopped, or its release resumed. */
export type HaltOutcome = { readonly halt: Halt; readonly opsAffected: number };

/** Commands of the gateway itself. A reply comes when the change is saved and recorded, as for any caller. */
export type OwnCommands = {
  ask<T extends CommandType>(command: CommandOf<T> & { readonly type: T }): Promise<Replies[T]>;
};

export type HaltUseCasesDeps = {
  readonly commands: OwnCommands;
  readonly newId: () => string;
  /** Resolves when what waits has had its turn. */
  readonly breathe: () => Promise<void>;
  readonly stopwatch: Stopwatch;
  readonly onError: (error: unknown, doing: string) => void;
};

/**
 * How many operations one step looks at, or resumes, and how long that should take: checks of others run in between.
 * Those that the halt does not stop cost next to nothing, so `most` bounds the first step among those that it stops.
 */
const SLICES = { aimMs: 4, first: 100, least: 50, most: 1_000 };

/**
 * Halts as an operator orders them. The halt is in force with the first command; what runs is then stopped in slices,
 * so that a hundred thousand operations hold nobody up. The answer waits for all of it (docs/spec.md, Halts).
 */
export class HaltKeeper {
  readonly #deps: HaltUseCasesDeps;
  readonly #expiring = new Set<string>();

  constructor(deps: HaltUseCasesDeps) {
    this.#deps = deps;
  }

  async create(principal: Principal, halt: Omit<NewHalt, 'id'>): Promise<Result<HaltOutcome, Fault>> {
    const created = await this.#deps.commands.ask({
      type: 'create-halt',
      principal,
      halt: { ...halt, id: this.#deps.newId() },
    });
    if (!created.ok) return created;
    const opsAffected = await this.#enforce(created.value.id);
    return opsAffected.ok ? ok({ halt: created.value, opsAffected: opsAffected.value }) : opsAffected;
  }

  async release(principal: Principal, id: string, reason: string): Promise<Result<HaltOutcome, Fault>> {
    const released = await this.#deps.commands.ask({ type: 'release-halt', principal, id, reason });
    if (!released.ok) return released;
    const { halt, paused } = released.value;
    const opsAffected = await this.#resume(halt, principal.subject, paused);
    return opsAffected.ok ? ok({ halt, opsAffected: opsAffected.value }) : opsAffected;
  }

  /** Releases the halts whose time is over. Call it often; a halt that is being released is left alone. */
  async releaseExpired(expired: readonly Halt[]): Promise<void> {
    for (const { id } of expired) {
      if (this.#expiring.has(id)) continue;
      this.#expiring.add(id);
      try {
        const released = await this.release(GATEWAY, id, 'expired');
        if (!released.ok) this.#deps.onError(released.fault, 'releasing an expired halt');
      } catch (error) {
        this.#deps.onError(error, 'releasing an expired halt');
      } finally {
        this.#expiring.delete(id);
      }
    }
  }

  async #enforce(id: string): Promise<Result<number, Fault>> {
    const slices = new TimedSlices(SLICES, this.#deps.stopwatch);
    const replies: Promise<Replies['enforce-halt']>[] = [];
    let from: CommandOf<'enforce-halt'>['from'];
    do {
      // Applied at once; only its answer waits for the log, so the slices follow one another without a pause.
      const reply = slices.run((most) => this.#deps.commands.ask({ type: 'enforce-halt', id, from, most }));
      replies.push(reply);
      from = await reply.then((answer) => (answer.ok ? answer.value.next : undefined));
      await this.#deps.breathe();
    } while (from !== undefined);
    return sumOf(await Promise.all(replies));
  }

  async #resume(
    halt: Halt,
    actor: string,
    paused: readonly (readonly [number, number])[],
  ): Promise<Result<number, Fault>> {
    const slices = new TimedSlices(SLICES, this.#deps.stopwatch);
    const replies: Promise<Replies['resume-halted']>[] = [];
    for (let at = 0; at < paused.length; ) {
      const reply = slices.run((most) => {
        const some = paused.slice(at, at + most);
        at += some.length;
        return this.#deps.commands.ask({ type: 'resume-halted', halt, actor, paused: some });
      });
      replies.push(reply);
      await this.#deps.breathe();
    }
    return sumOf(await Promise.all(replies));
  }
}

function sumOf(slices: readonly Result<{ readonly changed: number }, Fault>[]): Result<number, Fault> {
  let sum = 0;
  for (const slice of slices) {
    if (!slice.ok) return slice;
    sum += slice.value.changed;
  }
  return ok(sum);
}
