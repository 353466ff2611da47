/**
 * The settings of accounts, in a separate file because they are needed even if the libraries of accounts are not
 * loaded.
 */

import { isLoopback } from '../core/base/client-address.ts';
import type { Bounds } from '../limits/bounded.ts';
import { passwordThreads } from '../threads/crypto/pool.ts';
import { bracketed, type Config } from './config.ts';

/** While some logins hash, this many others read or write their rows, so that no hash waits for the database. */
const AROUND_A_HASH = 2;

export const loginBounds = (config: Config): Bounds => ({
  atOnce: passwordThreads(config.SVC_CRYPTO_THREADS, config.UV_THREADPOOL_SIZE) + AROUND_A_HASH,
  waiting: config.SVC_CRYPTO_QUEUE,
  waitMs: 10_000,
  what: 'sign-in',
});

/** Whether the first account needs proof that the operator makes it. */
export const needsSetup = ({ SVC_AUTH_FIRST_ACCOUNT: chosen, SVC_HTTP_ADDR: { host } }: Config): boolean =>
  chosen === 'setup' || (chosen === undefined && !isLoopback(host));

export const schemeOf = ({ SVC_TLS_CERT }: Config): 'http' | 'https' => (SVC_TLS_CERT === undefined ? 'http' : 'https');

/** Without a slash at the end. The port is the one that HTTP listens on: SVC_HTTP_ADDR may leave it to the system. */
export function publicUrlOf(config: Config, httpPort: number): string {
  const { host } = config.SVC_HTTP_ADDR;
  return (config.SVC_PUBLIC_URL ?? `${schemeOf(config)}://${bracketed(host)}:${httpPort}`).replace(/\/+$/, '');
}
