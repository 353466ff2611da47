/**
 * Devices that have signed in to an account before: others' wrong passwords do not lock them out (docs/spec.md,
 * Lockout). Such a device has a cookie with a number of its own, sealed for the e-mail address. Nothing is stored but
 * its failures.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { SecretDigest } from '../core/base/ids.ts';
import type { EmailKey } from '../core/identity/email.ts';
import { digestOf } from '../credentials/secret-token.ts';

/** Each sign-in begins it anew. */
export const DEVICE_MS = 180 * 24 * 60 * 60 * 1000;
const NUMBER_BYTES = 16;
const SHAPE = /^([A-Za-z0-9_-]{22})\.([A-Za-z0-9_-]{43})$/;

/** `secret`: of the store, so that cookies are valid at every gateway on it. */
const sealOf = (secret: string, key: EmailKey, number: string): Buffer =>
  createHmac('sha256', secret).update(`svc-device\n${key}\n${number}`).digest();

export function mintDevice(secret: string, key: EmailKey): string {
  const number = randomBytes(NUMBER_BYTES).toString('base64url');
  return `${number}.${sealOf(secret, key, number).toString('base64url')}`;
}

/** Under what the failures of the device are counted; undefined if it has not signed in to this account. */
export function deviceOf(secret: string, key: EmailKey, cookie: string | undefined): SecretDigest | undefined {
  const [, number, seal] = SHAPE.exec(cookie ?? '') ?? [];
  if (number === undefined || seal === undefined) return undefined;
  return timingSafeEqual(sealOf(secret, key, number), Buffer.from(seal, 'base64url'))
    ? digestOf(`device ${number} ${key}`)
    : undefined;
}
