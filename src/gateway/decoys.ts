import { createHmac, randomBytes } from 'node:crypto';
import type { Fault } from '../core/fault.ts';
import type { SecretDigest } from '../core/ids.ts';
import { ok, type Result } from '../core/result.ts';
import type { AccountStore } from './account-store.ts';
import type { Passwords } from './ports.ts';

/**
 * What a password is compared with when there is no account. It costs what it would if there were one: after the
 * parameters of hashing have been changed, accounts keep hashes of the old ones until their next sign-in. So each
 * address without an account goes by an account of its own, and changes with it. Which one, nobody can find out who
 * does not know the secret: else two such addresses, one on either side of a third, would tell whether that one has an
 * account.
 */
export class Decoys {
  readonly #passwords: Passwords;
  readonly #store: AccountStore;
  #todays: Promise<Result<string, Fault>> | undefined;
  #secret: Promise<Result<string, Fault>> | undefined;

  constructor({ passwords, store }: { readonly passwords: Passwords; readonly store: AccountStore }) {
    this.#passwords = passwords;
    this.#store = store;
  }

  /** Asks for what all decoys need, once. Call it before the first login, which would otherwise take longer. */
  async warmUp(): Promise<Result<{ readonly todays: string; readonly secret: string }, Fault>> {
    this.#todays ??= this.#passwords.hash(randomBytes(32).toString('base64url'));
    this.#secret ??= this.#store.read((reads) => reads.decoySecret());
    const [todays, secret] = await Promise.all([this.#todays, this.#secret]);
    if (!todays.ok) this.#todays = undefined;
    if (!secret.ok) this.#secret = undefined;
    if (!todays.ok) return todays;
    return secret.ok ? ok({ todays: todays.value, secret: secret.value }) : secret;
  }

  /** Where among the ids of accounts the one is looked for that an address goes by. */
  async placeOf(attempts: SecretDigest): Promise<Result<string, Fault>> {
    const ready = await this.warmUp();
    return ready.ok ? ok(createHmac('sha256', ready.value.secret).update(attempts).digest('hex')) : ready;
  }

  /** One that costs as much as `hash`; as much as a new account's where there is none. */
  async like(hash: string | undefined): Promise<Result<string, Fault>> {
    if (hash !== undefined)
      return ok(hash.replace(/[^$]+\$[^$]+$/, (saltAndHash) => saltAndHash.replace(/[^$]/g, 'A')));
    const ready = await this.warmUp();
    return ready.ok ? ok(ready.value.todays) : ready;
  }
}
