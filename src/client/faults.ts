/** Why a gateway cannot be reached, in words for people. Text from elsewhere in them is as it came. */
import { codeOf } from '../core/base/text.ts';

/** A failure between a client and its gateway: a line about the cause, and a sentence about the remedy. */
export class WayError extends Error {
  readonly advice: string;
  /** `setting`: in the environment or in options. `passing`: trying again may help. */
  readonly kind: 'setting' | 'passing' | 'lasting';

  constructor(kind: WayError['kind'], message: string, advice: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'WayError';
    this.kind = kind;
    this.advice = advice;
  }
}

export const CUT = 'the connection was closed';

export const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the connection was refused',
  ECONNRESET: CUT,
  ENOTFOUND: 'no such host',
  EAI_AGAIN: 'the host name cannot be resolved',
  EHOSTUNREACH: 'no route to the host',
  ENETUNREACH: 'no route to the host',
  ETIMEDOUT: 'no answer',
};

export const causeOf = (error: unknown): unknown =>
  error instanceof Error && error.cause !== undefined ? error.cause : error;

/** Recognised by its name: in Node.js 24 this error has no code. */
export const isNotHttp = (cause: unknown): boolean =>
  cause instanceof Error && (cause.name === 'HTTPParserError' || /^HPE_/.test(codeOf(cause) ?? ''));

export const isNotTls = (cause: unknown): boolean =>
  /^EPROTO$|^ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG)/.test(codeOf(cause) ?? '');

export function reasonOf(error: unknown): string {
  if (error instanceof DOMException && error.name === 'TimeoutError') return 'no answer';
  const cause = causeOf(error);
  if (isNotHttp(cause)) return 'the server there does not speak HTTP';
  if (isNotTls(cause)) return 'the server there does not speak TLS';
  return (
    REASONS[codeOf(cause) ?? ''] ??
    (cause instanceof Error ? cause.message.replace(ADVICE_OF_NODE, '') : 'the connection failed')
  );
}

/** Added by Node.js 24, on options that users of `svc` do not give. */
const ADVICE_OF_NODE = /; if the root CA is installed locally.*/;

export const unreachableText = (apiUrl: string, error: unknown): string =>
  error instanceof WayError ? error.message : `the gateway at ${apiUrl} cannot be reached: ${reasonOf(error)}`;

/** Explains how to fix a certificate; undefined if the error is not about one. */
export function certificateAdvice(error: unknown): string | undefined {
  const code = codeOf(causeOf(error)) ?? '';
  if (/SELF_SIGNED|UNABLE_TO_(VERIFY|GET_ISSUER)/.test(code))
    return 'If you trust it, set NODE_EXTRA_CA_CERTS to a PEM file with its certificate or that of its CA.';
  if (/ALTNAME/.test(code)) return 'Use a host name that its certificate is valid for.';
  return /CERT/.test(code)
    ? 'Check the clock of this machine; if it is right, the certificate must be replaced.'
    : undefined;
}
