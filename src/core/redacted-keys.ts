/** The keys whose values an audit log must not hold. */

/**
 * Compared by letters and digits alone and without case; a key that ends in one of them counts too, as `db_password`
 * and `x-api-key` do.
 */
export const DEFAULT_REDACTED_KEYS = [
  'password',
  'passwd',
  'passphrase',
  'secret',
  'token',
  'authorization',
  'api_key',
  'access_key',
  'secret_key',
  'private_key',
  'cookie',
  'credential',
  'credentials',
  'session_id',
  'bearer',
  'passwords',
  'secrets',
  'access_tokens',
  'refresh_tokens',
  'api_keys',
  'access_keys',
  'private_keys',
  'cookies',
] as const;

const MAX_REMEMBERED_KEYS = 4096;
const MAX_REMEMBERED_KEY_LENGTH = 64;

export type RedactedKeys = { covers(key: string): boolean };

const normalize = (key: string): string =>
  key
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]/gu, '');

/** `keys` take the place of the default ones; blank ones are ignored. */
export function redactedKeys(keys: readonly string[] = DEFAULT_REDACTED_KEYS): RedactedKeys {
  const endings = keys.map(normalize).filter((ending) => ending !== '');
  // The same few keys come with every check. The memory is bounded, because a caller chooses the keys.
  const remembered = new Map<string, boolean>();
  return {
    covers(key) {
      const known = remembered.get(key);
      if (known !== undefined) return known;
      const normal = normalize(key);
      const covered = endings.some((ending) => normal.endsWith(ending));
      if (key.length <= MAX_REMEMBERED_KEY_LENGTH) {
        if (remembered.size >= MAX_REMEMBERED_KEYS) remembered.clear();
        remembered.set(key, covered);
      }
      return covered;
    },
  };
}
