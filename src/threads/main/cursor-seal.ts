import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto';
import { assert } from '../../core/base/result.ts';

const IV_BYTES = 12;
const TAG_BYTES = 16;
/** Longer than any cursor, so that the length of a sealed one says nothing either. */
const TEXT_BYTES = 72;

/**
 * Encrypts cursors. A cursor is the number of a place in a registry that all orgs share, so it would tell how many
 * things others have. Sealed, nobody can read it, make one up, or use it in another listing. Until the restart, the
 * same cursor of the same listing is always sealed in the same way.
 */
export class CursorSeal {
  /** Stands before each cursor, and says which gateway of a cluster has made it; '' where there is one only. */
  readonly #prefix: string;
  readonly #key = randomBytes(32);
  readonly #ivKey = randomBytes(32);

  constructor(home?: string) {
    this.#prefix = home === undefined ? '' : `${home}.`;
  }

  seal(listing: string, cursor: string): string {
    assert(cursor.length <= TEXT_BYTES, 'a cursor fits its seal');
    const text = cursor.padEnd(TEXT_BYTES);
    // Derived from the cursor: equal cursors look equal, and different ones never share a nonce.
    const iv = createHmac('sha256', this.#ivKey).update(listing).update(text).digest().subarray(0, IV_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#key, iv).setAAD(Buffer.from(listing));
    const sealed = Buffer.concat([iv, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    return this.#prefix + sealed.toString('base64url');
  }

  /** Undefined for a text that was not sealed by this gateway for this listing. */
  open(listing: string, sealed: string): string | undefined {
    if (!sealed.startsWith(this.#prefix)) return undefined;
    const bytes = Buffer.from(sealed.slice(this.#prefix.length), 'base64url');
    if (bytes.length !== IV_BYTES + TEXT_BYTES + TAG_BYTES) return undefined;
    const decipher = createDecipheriv('aes-256-gcm', this.#key, bytes.subarray(0, IV_BYTES));
    decipher.setAAD(Buffer.from(listing)).setAuthTag(bytes.subarray(-TAG_BYTES));
    try {
      return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES)), decipher.final()])
        .toString('utf8')
        .trimEnd();
    } catch {
      return undefined; // forged, or from another listing or another run of the gateway
    }
  }
}
