import type { AgentRegistration, AgentRegistry } from '../core/agents/agents.ts';
import { type AgentKey, agentKeyOf, type SecretDigest } from '../core/base/ids.ts';
import type { Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import type { Entry } from '../ports/cluster-log.ts';
import { PerSecond } from './per-second.ts';

export type SharedAgentsOptions = {
  readonly find: (credentials: readonly SecretDigest[]) => Promise<Result<readonly AgentRegistration[], Fault>>;
  /** Applies all there is in the log. */
  readonly follow: () => Promise<boolean>;
  /** Its credential is no longer valid: what it has open is closed, in all threads. */
  readonly onRevoked: (agent: AgentKey) => void;
  readonly steadyMs: () => number;
};

/** Tokens that nobody knows can be sent by anybody, and each is looked for in the database. */
const LOOKUPS_PER_SECOND = 2_000;
const LOOKUP_EVERY_MS = 1;
/** A statement takes 1.4 ms for this many. */
const LOOKUPS_AT_ONCE = 200;

type Lookup = { readonly credential: SecretDigest; readonly done: () => void };

/**
 * The registrations of all gateways in this one's registry, as the log has them. A token that is unknown here is looked
 * for: where the database has it, the log is applied up to it.
 */
export class SharedAgents {
  readonly #options: SharedAgentsOptions;
  #registry: AgentRegistry | undefined;
  #lookups: Lookup[] = [];
  #isLooking = false;
  readonly #allowance = new PerSecond(LOOKUPS_PER_SECOND);

  constructor(options: SharedAgentsOptions) {
    this.#options = options;
  }

  /** Call it once the registry has what was loaded. */
  keepIn(registry: AgentRegistry): void {
    this.#registry = registry;
  }

  apply({ id, body }: Entry): void {
    const registry = this.#registry;
    if (registry === undefined) return;
    if (body === null) this.#drop(registry, id as AgentKey);
    else this.#adopt(registry, body as AgentRegistration);
  }

  restore(agents: readonly AgentRegistration[]): void {
    const registry = this.#registry;
    if (registry === undefined) return;
    const known = new Set(agents.map(({ identity }) => agentKeyOf(identity)));
    for (const { key } of [...registry.registeredAfter(0)]) if (!known.has(key)) this.#drop(registry, key);
    for (const registration of agents) this.#adopt(registry, registration);
  }

  #drop(registry: AgentRegistry, key: AgentKey): void {
    if (registry.deregister(key)) this.#options.onRevoked(key);
  }

  #adopt(registry: AgentRegistry, registration: AgentRegistration): void {
    const key = agentKeyOf(registration.identity);
    const before = registry.registrationOf(key);
    if (before?.credential === registration.credential && before.parent === registration.parent) return;
    const holder = registry.ownerOf(registration.credential);
    if (holder !== undefined && holder.key !== key) this.#drop(registry, holder.key); // it has another by now
    registry.register(registration);
    if (before !== undefined && before.credential !== registration.credential) this.#options.onRevoked(key);
  }

  /** Whether the database is to be asked for this token. */
  isUnknown(credential: SecretDigest): boolean {
    return this.#registry !== undefined && this.#registry.ownerOf(credential) === undefined;
  }

  /**
   * Looks for the agent of this token, together with all that are looked for in the same millisecond, and calls back:
   * by then it is known here, if anywhere. Beyond a bound it calls back at once.
   */
  lookFor(credential: SecretDigest, done: () => void): void {
    if (!this.#allowance.take(this.#options.steadyMs())) return done();
    this.#lookups.push({ credential, done });
    if (this.#isLooking) return;
    this.#isLooking = true;
    setTimeout(() => void this.#look(), LOOKUP_EVERY_MS);
  }

  async #look(): Promise<void> {
    while (this.#lookups.length > 0) {
      const lookups = this.#lookups.splice(0, LOOKUPS_AT_ONCE);
      try {
        const found = await this.#options.find([...new Set(lookups.map(({ credential }) => credential))]);
        // Not found, or not found out: denied either way, as an unknown token is.
        if (found.ok && found.value.length > 0) await this.#options.follow();
      } finally {
        for (const { done } of lookups) done();
      }
    }
    this.#isLooking = false;
  }
}
