/** Signs and verifies access tokens. fast-jwt is named here and nowhere else. */
import { createSigner, createVerifier } from 'fast-jwt';
import { dropFirst } from '../../core/base/lists.ts';
import type { TokenFrame } from './tasks.ts';

/** The media type of access tokens (RFC 9068), so that no other token signed by the same key can pass for one. */
const TOKEN_TYPE = 'at+jwt';
const ALGORITHM = 'EdDSA';

/**
 * More keys than a rotation ever leaves in force. With more, the oldest is dropped and built again when it is needed.
 */
const MAX_KEYS = 16;

function memoized<Given extends readonly unknown[], T>(build: (...given: Given) => T): (...given: Given) => T {
  const known = new Map<string, T>();
  return (...given) => {
    const key = JSON.stringify(given);
    const found = known.get(key);
    if (found !== undefined) return found;
    const built = build(...given);
    if (known.size >= MAX_KEYS) dropFirst(known);
    known.set(key, built);
    return built;
  };
}

const signerFor = memoized((kid: string, privateKeyPem: string): ((claims: object) => string) =>
  createSigner({ algorithm: ALGORITHM, key: privateKeyPem, header: { alg: ALGORITHM, typ: TOKEN_TYPE, kid } }),
);

// No cache here: a verified token is remembered by the I/O thread that asked, where revocation can reach it. The caller
// checks times, against the gateway's one clock.
const verifierFor = memoized((publicKeyPem: string, frame: TokenFrame): ((token: string) => object) =>
  createVerifier({
    key: publicKeyPem,
    algorithms: [ALGORITHM],
    checkTyp: TOKEN_TYPE,
    allowedIss: frame.issuer,
    allowedAud: frame.audience,
    requiredClaims: ['iss', 'aud', 'sub', 'iat', 'exp', 'jti', 'scope'],
    ignoreExpiration: true,
    ignoreNotBefore: true,
  }),
);

/** The claims; undefined for a token that is not genuine or not for this gateway. Its times are not checked. */
export function verifyToken(token: string, publicKeyPem: string, frame: TokenFrame): object | undefined {
  const check = verifierFor(publicKeyPem, frame);
  try {
    return check(token);
  } catch {
    return undefined; // The holder of a bad token must not learn which of the checks failed.
  }
}

export const signToken = (kid: string, privateKeyPem: string, claims: object): string =>
  signerFor(kid, privateKeyPem)(claims);
