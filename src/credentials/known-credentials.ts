import type { SecretDigest } from '../core/base/ids.ts';
import { Multimap } from '../core/base/lists.ts';

/** Enough for the agents that are busy at the same time. */
const MAX_KNOWN = 20_000;
/**
 * An org gets at most half of them, as of everything that orgs share. With more agents it displaces its own, not those
 * of others.
 */
const MAX_OF_ORG = MAX_KNOWN / 2;
/** When full, this many of the oldest are dropped together, so that it happens rarely. */
const FORGOTTEN_AT_ONCE = MAX_KNOWN / 20;

/**
 * The valid agent credentials that one I/O thread has seen, with their orgs. This decides only against whose quota a
 * request counts. The rights of a credential are checked elsewhere, for each request, so a replaced one may stay here
 * until it is refused.
 */
export class KnownCredentials {
  /** Both with the oldest first. */
  readonly #orgs = new Map<SecretDigest, string>();
  readonly #ofOrg = new Multimap<string, SecretDigest>();

  /** Undefined for a credential that was not seen here, or was refused. */
  orgOf(credential: SecretDigest | undefined): string | undefined {
    return credential === undefined ? undefined : this.#orgs.get(credential);
  }

  add(credential: SecretDigest, orgId: string): void {
    if (this.#orgs.has(credential)) return;
    this.#makeRoomFor(orgId);
    this.#orgs.set(credential, orgId);
    this.#ofOrg.add(orgId, credential);
  }

  forget(credential: SecretDigest): void {
    const orgId = this.#orgs.get(credential);
    if (orgId === undefined) return;
    this.#orgs.delete(credential);
    this.#ofOrg.delete(orgId, credential);
  }

  #makeRoomFor(orgId: string): void {
    const ofOrg = this.#ofOrg.of(orgId);
    if (ofOrg.size >= MAX_OF_ORG) this.#dropOldest(ofOrg);
    else if (this.#orgs.size >= MAX_KNOWN) this.#dropOldest(this.#orgs.keys());
  }

  #dropOldest(credentials: Iterable<SecretDigest>): void {
    let left = FORGOTTEN_AT_ONCE;
    for (const credential of credentials) {
      if (left === 0) return;
      this.forget(credential);
      left -= 1;
    }
  }
}
