/**
 * Why the gateway was not reached, in words for the reader of a log. The gRPC library's own words are for its
 * developers.
 */

const LAST_ERROR = /^No connection established\. Last error: ([^]*?)\.? Resolution note:/;

/** Errors of the system, TLS and HTTP/2 as the library passes them on, the most telling first. */
const REASONS: readonly (readonly [RegExp, string])[] = [
  [/ECONNREFUSED/, 'the connection was refused'],
  [/EHOSTUNREACH|ENETUNREACH/, 'no route to the host'],
  [/ETIMEDOUT/, 'no answer'],
  [/ECONNRESET|EPIPE/, 'the connection was closed'],
  // The gateway's native HTTP library does this after a while: it takes the HTTP/2 preface for the beginning of a
  // request.
  [
    /^Failed to connect/,
    'the connection was closed before gRPC began; check that the address is that of gRPC, not of HTTP',
  ],
  [/before secure TLS connection/, 'the connection was closed during the TLS handshake'],
  [/wrong version number|packet length too long/, 'the server there does not speak TLS'],
  [/^Protocol error/, 'the server there does not speak gRPC, or only with TLS'],
];

/** Whether a call ended, with these details, because there was no connection to send it on. */
export const isUnsent = (details: string): boolean =>
  LAST_ERROR.test(details) || details.startsWith('Name resolution failed');

/** The details of a call that ended without an answer of the gateway. */
export function whyUnreachable(address: string, details: string): string {
  const timeout = /^Deadline exceeded after ([\d.]+)s/.exec(details)?.[1];
  if (timeout !== undefined) return `no answer from ${address} within ${timeout} s`;
  if (details === 'Connection dropped') return `the connection to ${address} was lost`;
  return `no connection to ${address}: ${reasonIn(details)}`;
}

function reasonIn(details: string): string {
  if (details.startsWith('Name resolution failed')) return 'the host name cannot be resolved';
  const last = LAST_ERROR.exec(details)?.[1] ?? details;
  const known = REASONS.find(([pattern]) => pattern.test(last));
  // Other messages, such as for a rejected certificate, are clear as they are, apart from the time, which the log has
  // already.
  return (
    known?.[1] ??
    last
      .replace(/^Error: /, '')
      .replace(/ \(\d{4}-\d\d-\d\dT[\d:.]+Z\)$/, '')
      .replace(/\s+/g, ' ')
      .trim()
  );
}
