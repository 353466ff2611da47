import type { SecretDigest } from '../../core/base/ids.ts';
import { digestOf } from '../../credentials/secret-token.ts';

/** Tokens of one generation: enough for the agents that are busy at the same time, where few are registered. */
const LEAST_TOKENS = 10_000;
/** An entry takes some 200 bytes, a tenth of what its agent takes in the main thread. */
const MOST_TOKENS = 250_000;
/** More than one: a generation must not end because all agents are in it. */
const TOKENS_PER_AGENT = 2;
/**
 * In characters: as long as an agent's token may be, and longer than access tokens are. Anybody can present longer
 * ones, and fill the memory with them.
 */
const MAX_LENGTH = 1_024;
/** Limits one generation, in characters. Most tokens are 50 long; made-up ones may be longer. */
const MAX_TOTAL_LENGTH = 16 * 1024 * 1024;

/**
 * The digests of presented tokens, remembered because an agent presents the same one with every check.  They are
 * dropped by generations: a full one makes the one before it go, with all tokens that were not presented since.
 * Dropping the oldest token for each new one would cost a walk past the places of those dropped before, which a Map
 * keeps for a while: 10 µs with ten thousand tokens, and more with more.
 */
export class CredentialDigests {
  readonly #compute: (token: string) => SecretDigest;
  #young = new Map<string, SecretDigest>();
  #old: ReadonlyMap<string, SecretDigest> = new Map();
  #room = LEAST_TOKENS;
  #totalLength = 0;

  constructor(compute: (token: string) => SecretDigest) {
    this.#compute = compute;
  }

  of(token: string): SecretDigest {
    const known = this.#young.get(token);
    if (known !== undefined) return known;
    const digest = this.#old.get(token) ?? this.#compute(token);
    if (token.length > MAX_LENGTH) return digest;
    if (this.#young.size >= this.#room || this.#totalLength + token.length > MAX_TOTAL_LENGTH) this.#age();
    // A copy: the token may be a slice of a whole message, which the map would keep alive with it.
    this.#young.set(Buffer.from(token).toString(), digest);
    this.#totalLength += token.length;
    return digest;
  }

  /** Makes room for the tokens of so many agents. */
  makeRoomFor(agents: number): void {
    this.#room = Math.min(Math.max(TOKENS_PER_AGENT * agents, LEAST_TOKENS), MOST_TOKENS);
  }

  #age(): void {
    this.#old = this.#young;
    this.#young = new Map();
    this.#totalLength = 0;
  }
}

/** Digests of this thread. */
export const credentialDigests = new CredentialDigests(digestOf);

export const digestOfPresented = (token: string): SecretDigest => credentialDigests.of(token);
