/** Mail through an SMTP relay (docs/spec.md, Mail). nodemailer is named here and nowhere else. */
import { setMaxListeners } from 'node:events';
import { isIP } from 'node:net';
import { createTransport, type SMTPTransportOptions } from 'nodemailer';
import SMTPConnection from 'nodemailer/lib/smtp-connection';
import type { Mail } from '../ports/ports.ts';

// A way to deliver mail, as the outbox uses it.

/** An attempt at a delivery. `retry` says whether another one may succeed. */
export type Delivery =
  | { readonly kind: 'delivered' }
  | { readonly kind: 'failed'; readonly cause: string; readonly retry: boolean };

export type MailTransport = {
  deliver(mail: Mail): Promise<Delivery>;
  /** Connects and signs in, without sending anything. */
  check(): Promise<Delivery>;
  /** Cuts off what is under way, and makes every later attempt fail. */
  close(): void;
};

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

const TIMEOUT_MS = 10_000;
const IMPLICIT_TLS_PORT = 465;

const DELIVERY_TIMEOUT_MS = 60_000;

/** nodemailer's codes for failures that only a different configuration, or a different mail, can fix. */
const PERMANENT = new Set(['EAUTH', 'ENOAUTH', 'ECONFIG', 'EENVELOPE', 'EMESSAGE']);

/** Its code when the relay refuses in its greeting or its answer to HELO. */
const NOT_SERVING = 'EPROTOCOL';

/** A sentence when these options can never make a transport; undefined when they may. */
export function problemWith({ host, port, credentials, from }: SmtpOptions): string | undefined {
  if (isIP(host) === 0 && !/^[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?$/.test(host))
    return 'SVC_SMTP_HOST is not a host name';
  if (!Number.isInteger(port) || port < 1 || port > 65_535) return 'SVC_SMTP_PORT is not a port';
  if (credentials !== undefined && (credentials.user === '' || credentials.pass === ''))
    return 'SVC_SMTP_USER and SVC_SMTP_PASS must be set together';
  if (/[\r\n]/.test(from) || !from.includes('@')) return 'SVC_SMTP_FROM is not an e-mail address';
  return undefined;
}

export function createSmtpTransport(options: SmtpOptions): MailTransport {
  const settings = nodemailerOptions(options);
  const transport = createTransport(settings);
  const closing = new AbortController();
  setMaxListeners(0, closing.signal); // each mail of the last minute has one
  const { deliveryTimeoutMs = DELIVERY_TIMEOUT_MS } = options;
  const attempt = async (work: (signal: AbortSignal) => Promise<unknown>): Promise<Delivery> => {
    try {
      await work(endOf(closing.signal, deliveryTimeoutMs));
      return { kind: 'delivered' };
    } catch (error) {
      return closing.signal.aborted
        ? { kind: 'failed', cause: 'the gateway is stopping', retry: false }
        : failureOf(error as SmtpError);
    }
  };
  return {
    deliver: ({ to, subject, text }) =>
      // An object, not a text: an address in it is taken as it is, never split at a comma or read for a name.
      attempt((signal) =>
        transport.sendMail({
          from: options.from,
          to: { name: '', address: to },
          subject,
          text,
          disableFileAccess: true,
          disableUrlAccess: true,
          signal,
        }),
      ),
    check: () => attempt((signal) => signIn(settings, signal)),
    close: () => {
      closing.abort();
      transport.close();
    },
  };
}

/**
 * Aborted after this time, or together with `closing`. Not `AbortSignal.any`: Node.js 20 forgets the time when it
 * collects its garbage.
 */
function endOf(closing: AbortSignal, timeoutMs: number): AbortSignal {
  const ending = new AbortController();
  const end = (): void => ending.abort();
  setTimeout(end, timeoutMs).unref();
  closing.addEventListener('abort', end, { once: true, signal: ending.signal });
  if (closing.aborted) end();
  return ending.signal;
}

/**
 * The transport's own check cannot be cut off, so that a relay that says nothing would hold up the end of the process.
 */
function signIn({ auth, ...settings }: SMTPTransportOptions, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const connection = new SMTPConnection(settings);
    const end = (error?: Error | null): void => {
      if (error) {
        reject(error); // before closing, which would be reported as a lost connection
        connection.close();
      } else {
        resolve();
        connection.quit();
      }
    };
    signal.addEventListener('abort', () => end(new Error('the relay did not finish its answer in time')), {
      once: true,
    });
    connection.once('error', end);
    connection.once('end', () => end(new Error('the relay closed the connection')));
    connection.connect((error) => {
      if (error || auth === undefined || !connection.allowsAuth) end(error);
      else connection.login(auth, end);
    });
  });
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

type SmtpError = Error & { readonly code?: string; readonly responseCode?: number };

function failureOf({ message, code, responseCode }: SmtpError): Delivery {
  const isNoHost = code === 'EDNS' && message.includes('ENOTFOUND');
  // 5xx is the relay's last word about a mail or a user; one that greets with it serves nobody at the moment. 4xx asks
  // to come again.
  const retry =
    responseCode === undefined ? !PERMANENT.has(code ?? '') && !isNoHost : responseCode < 500 || code === NOT_SERVING;
  return { kind: 'failed', cause: message, retry };
}
