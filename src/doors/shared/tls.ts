/** The TLS options of a door, and the change of certificates without closing a connection. */
import type { SecureContextOptions, TlsOptions } from 'node:tls';
import type { TlsIdentity } from '../../ports/tls.ts';

/** As long as the head of a request may take. */
const HANDSHAKE_MS = 10_000;

/**
 * Options that change with the files. Ticket keys are among them: no session outlives the authority that admitted it.
 */
export const renewedOptions = ({
  cert,
  key,
  clientCa,
  ticketKeys,
}: TlsIdentity): SecureContextOptions & { readonly ticketKeys: Buffer } => ({
  cert,
  key,
  ticketKeys: Buffer.from(ticketKeys, 'base64'),
  ...(clientCa !== undefined && { ca: clientCa }),
});

export const secureOptions = (identity: TlsIdentity): TlsOptions => ({
  ...renewedOptions(identity),
  handshakeTimeout: HANDSHAKE_MS,
  requestCert: identity.clientCa !== undefined,
  rejectUnauthorized: identity.clientCa !== undefined,
});
