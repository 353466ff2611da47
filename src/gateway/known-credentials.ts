import type { SecretDigest } from '../core/ids.ts';

/** Enough for the agents that are busy at the same time. */
const MAX_KNOWN = 10_000;

/**
 * The credentials of agents that one I/O thread has seen to hold, with their orgs. What may be had with them is decided elsewhere,
 * for each request anew: here one that was replaced since is known until it is refused.
 */
export class KnownCredentials {
  readonly #orgs = new Map<SecretDigest, string>();

  /** Undefined for one that nobody has shown here, or that did not hold. */
  orgOf(credential: SecretDigest | undefined): string | undefined { return credential === undefined ? undefined : this.#orgs.get(credential); }

  add(credential: SecretDigest, orgId: string): void {
    if (this.#orgs.has(credential)) return;
    if (this.#orgs.size >= MAX_KNOWN) {
      const oldest = this.#orgs.keys().next();
      if (oldest.done !== true) this.#orgs.delete(oldest.value);
    }
    this.#orgs.set(credential, orgId);
  }

  forget(credential: SecretDigest): void { this.#orgs.delete(credential); }
}
