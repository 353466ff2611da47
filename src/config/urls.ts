/** How clients reach the gateway by its settings. */
import type { TlsPaths } from '../system/tls-files.ts';
import { bracketed, type Config } from './config.ts';

export const schemeOf = ({ SVC_TLS_CERT }: Config): 'http' | 'https' => (SVC_TLS_CERT === undefined ? 'http' : 'https');

/** Without a slash at the end. The port is the one that HTTP listens on: SVC_HTTP_ADDR may leave it to the system. */
export function publicUrlOf(config: Config, httpPort: number): string {
  const { host } = config.SVC_HTTP_ADDR;
  return (config.SVC_PUBLIC_URL ?? `${schemeOf(config)}://${bracketed(host)}:${httpPort}`).replace(/\/+$/, '');
}

/** Undefined: the doors serve without TLS. */
export function tlsPathsOf({
  SVC_TLS_CERT: cert,
  SVC_TLS_KEY: key,
  SVC_TLS_CLIENT_CA: clientCa,
}: Config): TlsPaths | undefined {
  return cert === undefined || key === undefined ? undefined : { cert, key, clientCa };
}
