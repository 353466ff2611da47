import { ok, type Result } from '../core/base/result.ts';
import type { CommandOf, CommandType, Replies } from '../core/commands.ts';
import type { Fault } from '../core/fault.ts';
import { GATEWAY } from '../core/halts/commands.ts';
import type { Halt } from '../core/halts/halt.ts';
import type { Principal } from '../core/identity/roles.ts';

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
  readonly onError: (error: unknown, doing: string) => void;
};

/** Operations that one step looks at, or resumes: some 5 ms, so that checks of others run in between. */
const SLICE = 500;

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
    const slices: Promise<Replies['enforce-halt']>[] = [];
    let from: CommandOf<'enforce-halt'>['from'];
    do {
      // Applied at once; only its answer waits for the log, so the slices follow one another without a pause.
      const { reply, next } = this.#slice(id, from);
      slices.push(reply);
      from = await next;
      await this.#deps.breathe();
    } while (from !== undefined);
    return sumOf(await Promise.all(slices));
  }

  #slice(id: string, from: CommandOf<'enforce-halt'>['from']) {
    const reply = this.#deps.commands.ask({ type: 'enforce-halt', id, from, most: SLICE });
    return { reply, next: reply.then((answer) => (answer.ok ? answer.value.next : undefined)) };
  }

  async #resume(
    halt: Halt,
    actor: string,
    paused: readonly (readonly [number, number])[],
  ): Promise<Result<number, Fault>> {
    const slices: Promise<Replies['resume-halted']>[] = [];
    for (let at = 0; at < paused.length; at += SLICE) {
      slices.push(
        this.#deps.commands.ask({ type: 'resume-halted', halt, actor, paused: paused.slice(at, at + SLICE) }),
      );
      await this.#deps.breathe();
    }
    return sumOf(await Promise.all(slices));
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
