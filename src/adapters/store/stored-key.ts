import { createHash } from 'node:crypto';

/**
 * Keys of the embedded store are limited in bytes and names are not that short, so a row lies under the digest of its
 * own key.
 */
export const storedKey = (key: string): string => createHash('sha256').update(key).digest('base64url');
