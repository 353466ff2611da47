/** Mail through an SMTP relay (spec: Authentication 12 and 13). nodemailer is named here and nowhere else. */
import { isIP } from 'node:net';
import { createTransport, type SMTPTransportOptions } from 'nodemailer';
import type { Mail } from '../../gateway/ports.ts';

export type SmtpOptions = {
  /** SVC_SMTP_HOST */
  readonly host: string;
  /** SVC_SMTP_PORT; 465 speaks TLS from the first byte, any other upgrades by STARTTLS. */
  readonly port: number;
  /** SVC_SMTP_USER and SVC_SMTP_PASS; undefined for a relay that asks for none. */
  readonly credentials: { readonly user: string; readonly pass: string } | undefined;
  /** SVC_SMTP_FROM */
  readonly from: string;
  /** Certificates to trust beside the system's, in PEM. */
  readonly ca?: string;
  /** For each step: connecting, the greeting, silence in between. */
  readonly timeoutMs?: number;
  /** For the whole of a delivery or a check, however slowly a relay answers each step. */
  readonly deliveryTimeoutMs?: number;
};

/** One attempt at a delivery. `retry` tells whether another one may succeed. */
export type Delivery = { readonly kind: 'delivered' } | { readonly kind: 'failed'; readonly cause: string; readonly retry: boolean };

export type MailTransport = {
  deliver(mail: Mail): Promise<Delivery>;
  /** Connects and signs in, without sending anything. */
  check(): Promise<Delivery>;
  close(): void;
};

const TIMEOUT_MS = 10_000;
const IMPLICIT_TLS_PORT = 465;

const DELIVERY_TIMEOUT_MS = 60_000;

/** What nodemailer calls a failure that only another configuration, or another mail, would mend. */
const PERMANENT = new Set(['EAUTH', 'ENOAUTH', 'ECONFIG', 'EENVELOPE', 'EMESSAGE']);

/** A sentence when these options can never make a transport; undefined when they may. */
export function problemWith({ host, port, credentials, from }: SmtpOptions): string | undefined {
  if (isIP(host) === 0 && !/^[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?$/.test(host)) return 'SVC_SMTP_HOST is not a host name';
  if (!Number.isInteger(port) || port < 1 || port > 65_535) return 'SVC_SMTP_PORT is not a port';
  if (credentials !== undefined && (credentials.user === '' || credentials.pass === '')) return 'SVC_SMTP_USER and SVC_SMTP_PASS go together';
  if (/[\r\n]/.test(from) || !from.includes('@')) return 'SVC_SMTP_FROM is not an address';
  return undefined;
}

export function createSmtpTransport(options: SmtpOptions): MailTransport {
  const transport = createTransport(nodemailerOptions(options));
  const { deliveryTimeoutMs = DELIVERY_TIMEOUT_MS } = options;
  return {
    deliver: ({ to, subject, text }) =>
      // An object, not a text: an address in it is taken as it is, never split at a comma or read for a name.
      attempt(() => transport.sendMail({ from: options.from, to: { name: '', address: to }, subject, text, disableFileAccess: true, disableUrlAccess: true, signal: AbortSignal.timeout(deliveryTimeoutMs) })),
    check: () => attempt(() => within(deliveryTimeoutMs, transport.verify())),
    close: () => transport.close(),
  };
}

function nodemailerOptions({ host, port, credentials, ca, timeoutMs = TIMEOUT_MS }: SmtpOptions): SMTPTransportOptions {
  const isImplicitTls = port === IMPLICIT_TLS_PORT;
  return {
    host,
    port,
    secure: isImplicitTls,
    // Credentials never cross the network in the clear, whatever the relay offers. Without any, TLS is used when it is
    // offered; and where it is used, the certificate must be good.
    requireTLS: credentials !== undefined && !isImplicitTls,
    ...(credentials !== undefined && { auth: { user: credentials.user, pass: credentials.pass } }),
    tls: { minVersion: 'TLSv1.2', ...(ca !== undefined && { ca }) },
    dnsTimeout: timeoutMs,
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: 2 * timeoutMs,
  };
}

/** The library knows no end for a check; a connection that drips on is left to it. */
async function within<T>(timeoutMs: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => { timer = setTimeout(() => reject(new Error('the relay never came to the end of its answer')), timeoutMs); });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

async function attempt(work: () => Promise<unknown>): Promise<Delivery> {
  try {
    await work();
    return { kind: 'delivered' };
  } catch (error) {
    const { message, code, responseCode } = error as Error & { code?: string; responseCode?: number };
    const isNoHost = code === 'EDNS' && message.includes('ENOTFOUND');
    // 5xx is the relay's last word; 4xx asks to come again.
    const retry = responseCode === undefined ? !PERMANENT.has(code ?? '') && !isNoHost : responseCode < 500;
    return { kind: 'failed', cause: message, retry };
  }
}
