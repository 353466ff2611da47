import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto';
import { assert } from '../core/result.ts';

const IV_BYTES = 12;
const TAG_BYTES = 16;
/** Longer than any cursor, so that the length of a sealed one says nothing either. */
const TEXT_BYTES = 72;

/**
 * Cursors are numbers of places in registries that all orgs share, and would tell how many things there are of others.
 * So they leave the gateway sealed, and nobody can make one up, nor hold the places of one listing against those of another.
 * The same cursor of the same listing is sealed the same way, until the restart.
 */
export class CursorSeal {
  readonly #key = randomBytes(32);
  readonly #ivKey = randomBytes(32);

  seal(listing: string, cursor: string): string {
    assert(cursor.length <= TEXT_BYTES, 'a cursor fits its seal');
    const text = cursor.padEnd(TEXT_BYTES);
    // From what is sealed: equal cursors look equal, and different ones never share their start.
    const iv = createHmac('sha256', this.#ivKey).update(listing).update(text).digest().subarray(0, IV_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#key, iv).setAAD(Buffer.from(listing));
    return Buffer.concat([iv, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]).toString('base64url');
  }

  /** undefined for what was not sealed here, for this listing. */
  open(listing: string, sealed: string): string | undefined {
    const bytes = Buffer.from(sealed, 'base64url');
    if (bytes.length !== IV_BYTES + TEXT_BYTES + TAG_BYTES) return undefined;
    const decipher = createDecipheriv('aes-256-gcm', this.#key, bytes.subarray(0, IV_BYTES));
    decipher.setAAD(Buffer.from(listing)).setAuthTag(bytes.subarray(-TAG_BYTES));
    try {
      return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES)), decipher.final()]).toString('utf8').trimEnd();
    } catch {
      return undefined; // forged, of another listing, or of another run
    }
  }
}
