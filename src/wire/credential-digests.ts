import { dropFirst } from '../core/drop-first.ts';
import type { SecretDigest } from '../core/ids.ts';
import { digestOf } from '../gateway/secret-token.ts';

/** How many digests one thread remembers: enough for the agents that are busy at the same time. */
const MAX_REMEMBERED = 10_000;
/**
 * In characters: as long as an agent's token may be, and longer than access tokens are. Anybody can present longer
 * ones, and fill the memory with them.
 */
const MAX_LENGTH = 1_024;

const remembered = new Map<string, SecretDigest>();

/** The digest of a presented token, remembered because an agent presents the same one with every check. */
export function digestOfPresented(token: string): SecretDigest {
  const known = remembered.get(token);
  if (known !== undefined) return known;
  const digest = digestOf(token);
  if (token.length > MAX_LENGTH) return digest;
  if (remembered.size >= MAX_REMEMBERED) dropFirst(remembered);
  // A copy: the token may be a slice of a whole message, which the map would keep alive with it.
  remembered.set(Buffer.from(token).toString(), digest);
  return digest;
}
