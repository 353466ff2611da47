import type { Fault } from '../core/fault.ts';
import type { SecretDigest } from '../core/ids.ts';
import { ok, type Result } from '../core/result.ts';
import type { Authenticated } from './use-cases.ts';
import type { VerifiedCache } from './verified-cache.ts';

export type CachedAuthenticatorDeps = {
  readonly cache: VerifiedCache;
  /** Asks the main thread. */
  readonly ask: (bearer: string) => Promise<Result<Authenticated, Fault>>;
  readonly digestOf: (secret: string) => SecretDigest;
  readonly nowMs: () => number;
};

/**
 * Authenticates bearers in one I/O thread: from its cache, else by the main thread, which is asked once for concurrent
 * requests of the same bearer.
 */
export class CachedAuthenticator {
  readonly #deps: CachedAuthenticatorDeps;
  readonly #asking = new Map<SecretDigest, Promise<Result<Authenticated, Fault>>>();

  constructor(deps: CachedAuthenticatorDeps) {
    this.#deps = deps;
  }

  async authenticate(bearer: string): Promise<Result<Authenticated, Fault>> {
    const digest = this.#deps.digestOf(bearer);
    const known = this.#deps.cache.get(digest, this.#deps.nowMs());
    if (known !== undefined) return ok(known);
    const asking = this.#asking.get(digest);
    if (asking !== undefined) return asking;
    const asked = this.#ask(digest, bearer).finally(() => {
      if (this.#asking.get(digest) === asked) this.#asking.delete(digest);
    });
    this.#asking.set(digest, asked);
    return asked;
  }

  /** Call it for every revocation, so that nothing that was known or asked before it is used any more. */
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
