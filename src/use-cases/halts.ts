import { assert, ok, type Result } from '../core/base/result.ts';
import type { CommandOf, CommandType, Replies } from '../core/commands.ts';
import type { Fault } from '../core/fault.ts';
import { GATEWAY } from '../core/halts/commands.ts';
import { type Halt, type HaltScope, parseHaltScope } from '../core/halts/halt.ts';
import type { HaltMatch } from '../core/halts/match.ts';
import type { Principal } from '../core/identity/roles.ts';
import { type Stopwatch, TimedSlices } from '../fairness/timed-slices.ts';
import type { Unconfirmed } from '../ports/cluster.ts';

export type NewHalt = CommandOf<'create-halt'>['halt'];
/** The halt, and how many operations it stopped, or its release resumed. */
export type HaltOutcome = { readonly halt: Halt; readonly opsAffected: number };
export type CreatedHalt = HaltOutcome & { readonly match: HaltMatch };

/** Commands of the gateway itself. A reply comes when the change is saved and recorded, as for any caller. */
export type OwnCommands = {
  ask<T extends CommandType>(command: CommandOf<T> & { readonly type: T }): Promise<Replies[T]>;
};

type Reply<T> = Result<T, Fault> & Unconfirmed;
type Released = Extract<Replies['release-halt'], { readonly ok: true }>['value'];

/** In a cluster, halts are shared by all gateways. */
export type HaltSharing = {
  /** How many operations the other gateways have stopped or resumed because of it, once they have. */
  opsElsewhere(id: string, without: readonly string[]): Promise<number>;
  /** Has the approvals follow it that it covers, or has covered. */
  changeApprovals(halt: Halt): Promise<void>;
};

export type HaltUseCasesDeps = {
  readonly commands: OwnCommands;
  readonly newId: () => string;
  /** Resolves when what waits has had its turn. */
  readonly breathe: () => Promise<void>;
  readonly stopwatch: Stopwatch;
  readonly pause: (ms: number) => Promise<void>;
  readonly onError: (error: unknown, doing: string) => void;
  /** Whom a halt of this scope is about. */
  readonly matchOf: (scope: HaltScope) => HaltMatch;
  /** Undefined for a gateway that is alone. */
  readonly shared?: HaltSharing | undefined;
};

/**
 * How many operations one step looks at, or resumes, and how long that should take: checks of others run in between.
 * Operations that the halt does not stop cost next to nothing, so `most` bounds the first step among those that it
 * stops.
 */
const SLICES = { aimMs: 4, first: 100, least: 50, most: 1_000 };
/** Changes that could not be recorded are tried again after this. */
const RETRY_MS = 1_000;
/** Halts of other gateways whose effect here is remembered: they ask for it at once. */
const MAX_ADOPTED = 1_000;

/** Faults after which a command has been applied and taken back. */
const UNDONE: readonly Fault['kind'][] = ['audit_unavailable', 'store_unreachable', 'internal'];

/**
 * Halts as an operator orders them. The halt is in force with the first command; what runs is then stopped in slices,
 * so that a hundred thousand operations hold nobody up. The answer waits for all of it (docs/spec.md, Halts).
 */
export class HaltKeeper {
  readonly #deps: HaltUseCasesDeps;
  readonly #expiring = new Set<string>();
  readonly #adopted = new Map<string, Promise<number>>();

  constructor(deps: HaltUseCasesDeps) {
    this.#deps = deps;
  }

  async create(principal: Principal, halt: Omit<NewHalt, 'id'>): Promise<Reply<CreatedHalt>> {
    const id = this.#deps.newId();
    const created: Reply<Halt> = await this.#deps.commands.ask({
      type: 'create-halt',
      principal,
      halt: { ...halt, id },
    });
    if (!created.ok) return created;
    const done = await this.#everywhere(created, created.value, this.#enforce(id));
    if (!done.ok) return done;
    const scope = parseHaltScope(created.value.scope);
    assert(scope !== undefined, 'the scope of a halt was read before');
    return { ...done, value: { ...done.value, match: this.#deps.matchOf(scope) } };
  }

  async release(principal: Principal, id: string, reason: string): Promise<Reply<HaltOutcome>> {
    const released: Reply<Released> = await this.#deps.commands.ask({ type: 'release-halt', principal, id, reason });
    if (!released.ok) {
      // In force again. Operations begun between the release and its undoing are stopped like earlier ones.
      if (UNDONE.includes(released.fault.kind))
        this.#follow(id, undefined, []).catch((error: unknown) =>
          this.#deps.onError(error, 'enforcing a halt whose release could not be recorded'),
        );
      return released;
    }
    const { halt, paused } = released.value;
    return this.#everywhere(released, halt, this.#resume(halt, principal.subject, paused));
  }

  /** The answer, once operations and approvals follow the halt at every gateway that acts by it. */
  async #everywhere(
    { unconfirmed }: Unconfirmed,
    halt: Halt,
    here: Promise<Result<number, Fault>>,
  ): Promise<Reply<HaltOutcome>> {
    const { shared } = this.#deps;
    const [own, others] = await Promise.all([
      here,
      shared?.opsElsewhere(halt.id, unconfirmed ?? []) ?? 0,
      shared?.changeApprovals(halt),
    ]);
    if (!own.ok) return own;
    return { ...ok({ halt, opsAffected: own.value + others }), ...(unconfirmed && { unconfirmed }) };
  }

  /**
   * Takes over what another gateway has decided; undefined: it could not be recorded, so the halt never was. It is in
   * force, or not, when this returns; what it is about here is then stopped or resumed.
   */
  adopt(id: string, halt: Halt | undefined): void {
    const adopted = this.#deps.commands.ask({ type: 'adopt-halt', id, halt });
    const affected = adopted
      .then((reply) => (reply.ok ? this.#follow(id, halt ?? reply.value.before, reply.value.paused) : 0))
      .catch((error: unknown) => {
        this.#deps.onError(error, 'following a halt of another gateway');
        return 0;
      });
    this.#adopted.delete(id);
    this.#adopted.set(id, affected);
    for (const oldest of this.#adopted.keys()) {
      if (this.#adopted.size <= MAX_ADOPTED) return;
      this.#adopted.delete(oldest);
    }
  }

  /** How many operations were stopped or resumed here for a halt that was adopted, once they are. */
  async affected(id: string): Promise<number> {
    return (await this.#adopted.get(id)) ?? 0;
  }

  /** A change that cannot be recorded is tried until it can: nothing that the halt covers is allowed meanwhile. */
  async #follow(id: string, halt: Halt | undefined, paused: readonly (readonly [number, number])[]): Promise<number> {
    for (;;) {
      const done =
        paused.length === 0 || halt === undefined
          ? await this.#enforce(id)
          : await this.#resume(halt, halt.released?.by ?? GATEWAY.subject, paused);
      if (done.ok) return done.value;
      await this.#deps.pause(RETRY_MS);
    }
  }

  /** Releases the halts whose time is over. Call it often; a halt that is being released is left alone. */
  async releaseExpired(expired: readonly Halt[]): Promise<void> {
    for (const { id } of expired) {
      if (this.#expiring.has(id)) continue;
      this.#expiring.add(id);
      try {
        const released = await this.release(GATEWAY, id, 'expired');
        // An outage of a store is logged as such, and the next call tries again.
        if (!released.ok && released.fault.kind !== 'store_unreachable')
          this.#deps.onError(released.fault, 'releasing an expired halt');
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
