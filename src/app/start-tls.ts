/** TLS for the doors, by the files that the settings name. */

import type { Config } from '../config/config.ts';
import { readTlsFiles, TlsFiles, type TlsPaths } from '../system/tls-files.ts';
import { StartError } from './start-checks.ts';
import type { StartContext } from './start-context.ts';

/** Undefined: the doors serve without TLS. */
export function tlsPathsOf({
  SVC_TLS_CERT: cert,
  SVC_TLS_KEY: key,
  SVC_TLS_CLIENT_CA: clientCa,
}: Config): TlsPaths | undefined {
  return cert === undefined || key === undefined ? undefined : { cert, key, clientCa };
}

/** Throws a `StartError` that names the file which is missing or wrong. */
export function openTls({ config, log, closers }: StartContext): TlsFiles | undefined {
  const paths = tlsPathsOf(config);
  if (paths === undefined) return undefined;
  const read = readTlsFiles(paths);
  if (!read.ok) throw new StartError(read.fault);
  const files = new TlsFiles(paths, read.value, (level, message, fields) => log[level](message, fields));
  closers.add('the watch over the TLS files; everything is written', () => files.close());
  if (files.endMs <= Date.now()) log.warn('the certificate in SVC_TLS_CERT has expired', { path: paths.cert });
  return files;
}
