import { networkOf } from '../core/base/client-address.ts';
import type { SecretDigest } from '../core/base/ids.ts';
import { Multimap } from '../core/base/lists.ts';
import { assert, ok, type Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import { RateLimiter } from '../fairness/rate-limit.ts';
import type { Authenticated } from '../ports/use-case.ts';

export type CachedAuthenticatorDeps = {
  readonly cache: VerifiedCache;
  /** Asks the main thread. */
  readonly ask: (bearer: string) => Promise<Result<Authenticated, Fault>>;
  readonly digestOf: (secret: string) => SecretDigest;
  readonly nowMs: () => number;
  /** Failures a minute of one network, after which its tokens are not verified; 0: no limit. */
  readonly failuresPerMinute?: number;
};

/** Has the shape of an access token, whose signature costs far more to verify than a key does to look up. */
const isTokenShaped = (bearer: string): boolean => /^[^.]+\.[^.]+\.[^.]+$/.test(bearer);

/**
 * Authenticates bearers in one I/O thread: from its cache, else by the main thread, which is asked once for concurrent
 * requests of the same bearer. Networks that send forged tokens are refused before verification.
 */
export class CachedAuthenticator {
  readonly #deps: CachedAuthenticatorDeps;
  readonly #asking = new Map<SecretDigest, Promise<Result<Authenticated, Fault>>>();

  /** Invalid tokens by network. */
  readonly #failures: RateLimiter;

  constructor(deps: CachedAuthenticatorDeps) {
    this.#deps = deps;
    this.#failures = new RateLimiter(deps.failuresPerMinute ?? 0);
  }

  /** `address`: the client's; without one, nothing is counted. Faults: also `rate_limited`. */
  async authenticate(bearer: string, address = ''): Promise<Result<Authenticated, Fault>> {
    const digest = this.#deps.digestOf(bearer);
    const known = this.#deps.cache.get(digest, this.#deps.nowMs());
    if (known !== undefined) return ok(known);
    const network = address !== '' && isTokenShaped(bearer) ? networkOf(address) : undefined;
    if (network === undefined) return this.#askOnce(digest, bearer);
    // Counted before it costs anything, or as many as one can send at once would get through.
    const permit = this.#failures.take(network, this.#deps.nowMs());
    if (!permit.ok) return permit;
    const answer = await this.#askOnce(digest, bearer);
    if (answer.ok || answer.fault.kind !== 'unauthenticated') this.#failures.giveBack(network);
    return answer;
  }

  async #askOnce(digest: SecretDigest, bearer: string): Promise<Result<Authenticated, Fault>> {
    const asking = this.#asking.get(digest);
    if (asking !== undefined) return asking;
    const asked = this.#ask(digest, bearer).finally(() => {
      if (this.#asking.get(digest) === asked) this.#asking.delete(digest);
    });
    this.#asking.set(digest, asked);
    return asked;
  }

  /** Call it for every revocation: no answer known or requested before it is used afterwards. */
  drop(subject: string): void {
    this.#deps.cache.drop(subject);
    this.#asking.clear();
  }

  async #ask(digest: SecretDigest, bearer: string): Promise<Result<Authenticated, Fault>> {
    const { cache, ask, nowMs } = this.#deps;
    const { epoch } = cache;
    const answer = await ask(bearer);
    if (answer.ok) cache.put(digest, answer.value, nowMs(), epoch);
    return answer;
  }
}

export type VerifiedCacheOptions = {
  readonly maxEntries: number;
  /** After this time an entry is verified again, whatever its expiry, so that the use of a key is noted. */
  readonly maxAgeMs: number;
};

type Entry = { readonly authenticated: Authenticated; readonly freshUntilMs: number };

/**
 * The valid credentials that one I/O thread has seen, by the digest of the bearer. The least recently used goes first,
 * none stays past its expiry, and a revocation drops those of its subject. Refusals are not cached.
 */
export class VerifiedCache {
  readonly #options: VerifiedCacheOptions;
  /** In the order of use: the first is the next to go. */
  readonly #entries = new Map<SecretDigest, Entry>();
  readonly #bySubject = new Multimap<string, SecretDigest>();
  #epoch = 0;

  constructor(options: VerifiedCacheOptions = { maxEntries: 10_000, maxAgeMs: 60_000 }) {
    assert(options.maxEntries > 0, 'a cache holds at least one entry');
    this.#options = options;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Read this before asking who a bearer is, and pass it to {@link put}. */
  get epoch(): number {
    return this.#epoch;
  }

  get(bearer: SecretDigest, nowMs: number): Authenticated | undefined {
    const entry = this.#entries.get(bearer);
    if (entry === undefined) return undefined;
    // Further ahead, the clock was set back.
    if (nowMs >= entry.freshUntilMs || entry.freshUntilMs - nowMs > this.#options.maxAgeMs) {
      this.#remove(bearer, entry);
      return undefined;
    }
    this.#entries.delete(bearer);
    this.#entries.set(bearer, entry);
    return entry.authenticated;
  }

  /** Drops an answer that was on its way during a revocation: it may be about the revoked credential. */
  put(bearer: SecretDigest, authenticated: Authenticated, nowMs: number, epochWhenAsked: number): void {
    if (epochWhenAsked !== this.#epoch) return;
    const freshUntilMs = Math.min(authenticated.expiresAtMs, nowMs + this.#options.maxAgeMs);
    const known = this.#entries.get(bearer);
    if (known !== undefined) this.#remove(bearer, known);
    else if (this.#entries.size >= this.#options.maxEntries) this.#removeOldest();
    this.#entries.set(bearer, { authenticated, freshUntilMs });
    this.#bySubject.add(authenticated.principal.subject, bearer);
  }

  /** Drops every credential of `key:<id>` or `account:<id>`. */
  drop(subject: string): void {
    this.#epoch += 1;
    for (const bearer of this.#bySubject.of(subject)) this.#entries.delete(bearer);
    this.#bySubject.deleteAll(subject);
  }

  #removeOldest(): void {
    for (const [bearer, entry] of this.#entries) {
      this.#remove(bearer, entry);
      return;
    }
  }

  #remove(bearer: SecretDigest, { authenticated }: Entry): void {
    this.#entries.delete(bearer);
    this.#bySubject.delete(authenticated.principal.subject, bearer);
  }
}
