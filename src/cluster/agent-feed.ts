import type { AgentRegistration, AgentRegistry } from '../core/agents/agents.ts';
import { type AgentKey, agentKeyOf, type SecretDigest } from '../core/base/ids.ts';
import { ok, type Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import type { Barrier, Bus, SharedAgents } from '../ports/cluster.ts';
import { type AgentStore, Refused } from '../ports/ports.ts';
import { PerSecond } from './per-second.ts';
import { oneAfterAnother } from './replicas.ts';

export type AgentFeedOptions = {
  readonly store: SharedAgents;
  readonly bus: Bus;
  readonly barrier: Barrier;
  /** Its credential is no longer valid: what it has open is closed, in all threads. */
  readonly onRevoked: (agent: AgentKey) => void;
  readonly steadyMs: () => number;
};

/** Tokens that nobody knows can be sent by anybody, and each is looked for in the database. */
const LOOKUPS_PER_SECOND = 2_000;
const LOOKUP_EVERY_MS = 1;
/** One statement takes 1.4 ms for this many. */
const LOOKUPS_AT_ONCE = 200;

/** No reading takes longer. */
const READ_WITHIN_MS = 30_000;

type Lookup = { readonly credential: SecretDigest; readonly done: () => void };

/**
 * The registrations of all gateways in this one's registry. What this gateway changes is written to the database first
 * of all copies but its own; what others change comes with the feed, and a token that is unknown here is looked for.
 */
export class AgentFeed implements AgentStore {
  readonly #options: AgentFeedOptions;
  #registry: AgentRegistry | undefined;
  readonly #loaded: readonly AgentRegistration[];
  /** Agents that this gateway writes at the moment: here they are newer than in the database. */
  readonly #writing = new Map<AgentKey, number>();
  /** When each of its own writes has ended, by a count: what was read before does not know of it. The oldest first. */
  readonly #written = new Map<AgentKey, { readonly nth: number; readonly atMs: number }>();
  #writes = 0;
  #lookups: Lookup[] = [];
  #isLooking = false;
  readonly #allowance = new PerSecond(LOOKUPS_PER_SECOND);

  /** `loaded`: every registration, to begin with. */
  constructor(options: AgentFeedOptions, loaded: readonly AgentRegistration[]) {
    this.#options = options;
    this.#loaded = loaded;
  }

  load(): Iterable<AgentRegistration> {
    return this.#loaded;
  }

  /** Call it once the registry has what was loaded. */
  follow(registry: AgentRegistry): void {
    this.#registry = registry;
  }

  async save(registration: AgentRegistration, isRotation = false): Promise<readonly string[]> {
    const { store } = this.#options;
    const hasEnded = await this.#write(agentKeyOf(registration.identity), () => store.save(registration));
    return this.#announce(isRotation || hasEnded);
  }

  async remove(key: AgentKey): Promise<readonly string[]> {
    const { store } = this.#options;
    await this.#write(key, () => store.remove(key));
    return this.#announce(true);
  }

  async #write<T>(key: AgentKey, write: () => Promise<Result<T, Fault>>): Promise<T> {
    this.#writing.set(key, (this.#writing.get(key) ?? 0) + 1);
    try {
      const written = await write();
      if (!written.ok) throw new Refused(written.fault);
      return written.value;
    } finally {
      this.#noteWritten(key);
      const left = (this.#writing.get(key) ?? 1) - 1;
      if (left === 0) this.#writing.delete(key);
      else this.#writing.set(key, left);
    }
  }

  #noteWritten(key: AgentKey): void {
    const nowMs = this.#options.steadyMs();
    this.#writes += 1;
    this.#written.delete(key);
    this.#written.set(key, { nth: this.#writes, atMs: nowMs });
    for (const [old, { atMs }] of this.#written) {
      if (atMs > nowMs - READ_WITHIN_MS) return;
      this.#written.delete(old);
    }
  }

  /** A token that has ended is waited for; a new one is found by looking for it, wherever it is used first. */
  async #announce(hasEnded: boolean): Promise<readonly string[]> {
    const { barrier, bus } = this.#options;
    if (hasEnded) return barrier.pass('agents');
    bus.send('all', { type: 'changed', topic: 'agents' });
    return [];
  }

  /** Takes over what others have changed. Resolves when a reading that began after the call has ended. */
  readonly refresh = oneAfterAnother(() => this.#refresh());

  #isNewerHere(key: AgentKey, readAt: number): boolean {
    return this.#writing.has(key) || (this.#written.get(key)?.nth ?? 0) > readAt;
  }

  async #refresh(): Promise<Result<void, Fault>> {
    const readAt = this.#writes;
    const read = await this.#options.store.changes();
    if (!read.ok || this.#registry === undefined) return read.ok ? ok(undefined) : read;
    const { changes, isWhole, seen } = read.value;
    const registry = this.#registry;
    const known = isWhole ? new Set(changes.map(({ key }) => key)) : undefined;
    if (known !== undefined)
      for (const { key } of [...registry.registeredAfter(0)]) if (!known.has(key)) this.#drop(registry, key, readAt);
    const isComplete = !changes.some(({ key }) => this.#isNewerHere(key, readAt));
    // Removals first: a credential may have passed from one agent to another.
    for (const { key, registration } of changes) if (registration === undefined) this.#drop(registry, key, readAt);

    for (const { key, registration } of changes) {
      if (registration !== undefined && !this.#isNewerHere(key, readAt))
        this.#adopt(registry, key, registration, readAt);
    }
    if (isComplete) seen();
    return ok(undefined);
  }

  #drop(registry: AgentRegistry, key: AgentKey, readAt: number): void {
    if (!this.#isNewerHere(key, readAt) && registry.deregister(key)) this.#options.onRevoked(key);
  }

  #adopt(registry: AgentRegistry, key: AgentKey, registration: AgentRegistration, readAt: number): void {
    const before = registry.registrationOf(key);
    const holder = registry.ownerOf(registration.credential);
    if (before?.credential === registration.credential && before.parent === registration.parent && holder?.key === key)
      return;
    if (holder !== undefined && holder.key !== key) this.#drop(registry, holder.key, readAt); // it has another by now
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
      const readAt = this.#writes;
      try {
        const found = await this.#options.store.find([...new Set(lookups.map(({ credential }) => credential))]);
        // Not found, or not found out: denied either way, as an unknown token is.
        if (found.ok) for (const registration of found.value) this.#adoptFound(registration, readAt);
      } finally {
        for (const { done } of lookups) done();
      }
    }
    this.#isLooking = false;
  }

  #adoptFound(registration: AgentRegistration, readAt: number): void {
    const key = agentKeyOf(registration.identity);
    if (this.#registry !== undefined && !this.#isNewerHere(key, readAt))
      this.#adopt(this.#registry, key, registration, readAt);
  }
}
