/** The certificate, its key and the authority of clients, read from files and read again when these change. */
import { randomBytes, X509Certificate } from 'node:crypto';
import { readFileSync, unwatchFile, watchFile } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { fail, ok, type Result } from '../core/base/result.ts';
import { codeOf, messageOf } from '../core/base/text.ts';
import type { TlsIdentity } from '../ports/tls.ts';

export type TlsPaths = { readonly cert: string; readonly key: string; readonly clientCa: string | undefined };

const LOOK_EVERY_MS = 2_000;
/** OpenSSL derives from them a name, a key for the cipher, and one for the check; its format wants 48 bytes. */
const TICKET_KEY_BYTES = 48;

/** The fault says which setting is wrong, and why. */
export function readTlsFiles({ cert, key, clientCa }: TlsPaths): Result<TlsIdentity, string> {
  const named = { SVC_TLS_CERT: cert, SVC_TLS_KEY: key, SVC_TLS_CLIENT_CA: clientCa };
  const texts: Record<string, string | undefined> = {};
  for (const [setting, path] of Object.entries(named)) {
    if (path === undefined) continue;
    try {
      texts[setting] = readFileSync(path, 'utf8');
    } catch (error) {
      return fail(`cannot read ${path} of ${setting} (${codeOf(error) ?? messageOf(error)})`);
    }
  }
  const { SVC_TLS_CERT = '', SVC_TLS_KEY = '', SVC_TLS_CLIENT_CA } = texts;
  const problem = problemOf(named, SVC_TLS_CERT, SVC_TLS_KEY, SVC_TLS_CLIENT_CA);
  if (problem !== undefined) return fail(problem);
  const ticketKeys = randomBytes(TICKET_KEY_BYTES).toString('base64');
  return ok({ cert: SVC_TLS_CERT, key: SVC_TLS_KEY, clientCa: SVC_TLS_CLIENT_CA, ticketKeys });
}

function problemOf(
  { SVC_TLS_CERT, SVC_TLS_KEY, SVC_TLS_CLIENT_CA }: Readonly<Record<string, string | undefined>>,
  cert: string,
  key: string,
  clientCa: string | undefined,
): string | undefined {
  const isReadable = (context: object): boolean => {
    try {
      createSecureContext(context);
      return true;
    } catch {
      return false;
    }
  };
  if (certificatesIn(cert).length === 0 || !isReadable({ cert }))
    return `${SVC_TLS_CERT} of SVC_TLS_CERT is not a certificate in PEM format`;
  if (!isReadable({ key }))
    return `${SVC_TLS_KEY} of SVC_TLS_KEY is not a private key in PEM format without a password`;
  if (!isReadable({ cert, key }))
    return `${SVC_TLS_KEY} of SVC_TLS_KEY is not the key of the certificate in SVC_TLS_CERT`;
  // OpenSSL takes text without a certificate for an empty list of authorities.
  if (clientCa !== undefined && (certificatesIn(clientCa).length === 0 || !isReadable({ ca: clientCa })))
    return `${SVC_TLS_CLIENT_CA} of SVC_TLS_CLIENT_CA has no certificates in PEM format`;
  return undefined;
}

function certificatesIn(pem: string): readonly X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  try {
    return blocks.map((block) => new X509Certificate(block));
  } catch {
    return [];
  }
}

/** When the certificate ends that clients are shown, in milliseconds since the Unix epoch. */
const endOf = ({ cert }: Pick<TlsIdentity, 'cert'>): number => Date.parse(certificatesIn(cert)[0]?.validTo ?? '');

const areSame = (one: TlsIdentity, other: TlsIdentity): boolean =>
  one.cert === other.cert && one.key === other.key && one.clientCa === other.clientCa;

export type TlsReport = (level: 'info' | 'error', message: string, fields: object) => void;

/** The identity in force. A file that is wrong leaves it as it is, and is reported once. */
export class TlsFiles {
  readonly #paths: TlsPaths;
  readonly #report: TlsReport;
  #current: TlsIdentity;
  #fault: string | undefined;
  #onChange: (identity: TlsIdentity) => void = () => undefined;

  constructor(paths: TlsPaths, first: TlsIdentity, report: TlsReport) {
    this.#paths = paths;
    this.#current = first;
    this.#report = report;
  }

  get current(): TlsIdentity {
    return this.#current;
  }

  /** When its certificate ends, in milliseconds since the Unix epoch. */
  get endMs(): number {
    return endOf(this.#current);
  }

  /** Why what the files have now is not in force. */
  get fault(): string | undefined {
    return this.#fault;
  }

  follow(onChange: (identity: TlsIdentity) => void): void {
    this.#onChange = onChange;
    for (const path of this.#named) watchFile(path, { persistent: false, interval: LOOK_EVERY_MS }, this.#look);
  }

  close(): void {
    for (const path of this.#named) unwatchFile(path, this.#look);
  }

  /** Reads the files now. */
  readonly #look = (): void => this.reload();

  reload(): void {
    const read = readTlsFiles(this.#paths);
    const fault = read.ok ? this.#faultOf(read.value) : read.fault;
    if (fault !== undefined && fault !== this.#fault)
      this.#report('error', 'the TLS files were not reloaded; the certificate before stays in force', {
        reason: fault,
      });
    this.#fault = fault;
    if (fault !== undefined || !read.ok || areSame(read.value, this.#current)) return;
    this.#current = read.value;
    this.#onChange(read.value);
    this.#report('info', 'TLS files reloaded; new connections get the new certificate', {
      validUntil: new Date(endOf(read.value)).toISOString(),
    });
  }

  /** Who puts an expired certificate in place of a valid one has mixed them up. */
  #faultOf(read: TlsIdentity): string | undefined {
    const nowMs = Date.now();
    if (endOf(read) > nowMs || endOf(this.#current) <= nowMs || read.cert === this.#current.cert) return undefined;
    return `the certificate in ${this.#paths.cert} of SVC_TLS_CERT has expired`;
  }

  get #named(): readonly string[] {
    const { cert, key, clientCa } = this.#paths;
    return [cert, key, ...(clientCa === undefined ? [] : [clientCa])];
  }
}
