import { mappingIn } from '../../core/base/mapping.ts';
import { fail, ok, type Result } from '../../core/base/result.ts';
import type { Fault } from '../../core/fault.ts';
import { type CurrentToken, readClaims, type TokenClaims } from '../../core/identity/token-claims.ts';
import type { SigningKeys } from '../../credentials/signing-keys.ts';
import type { Tokens } from '../../credentials/tokens.ts';
import type { Clock } from '../../ports/ports.ts';
import type { CryptoLane } from './lane.ts';
import type { TokenFrame } from './tasks.ts';

export type TokensDeps = {
  readonly lane: CryptoLane;
  readonly keys: SigningKeys;
  readonly clock: Clock;
  readonly frame: TokenFrame;
};

const REFUSED: Fault = { kind: 'unauthenticated', detail: 'the token is invalid or has expired' };

/** Signs and verifies access tokens on the crypto threads. Checks that need no signature come first, here. */
export function createTokens({ lane, keys, clock, frame }: TokensDeps): Tokens {
  return {
    sign: (claims) => {
      const { kid, privateKeyPem } = keys.signer();
      const framed: TokenClaims = { ...claims, iss: frame.issuer, aud: frame.audience };
      return lane.run({ type: 'sign-token', kid, privateKeyPem, claims: framed });
    },
    verify: async (token): Promise<Result<CurrentToken, Fault>> => {
      const publicKeyPem = keys.verifier(keyIdOf(token) ?? '');
      if (publicKeyPem === undefined) return fail(REFUSED);
      const verified = await lane.run({ type: 'verify-token', token, publicKeyPem, frame });
      if (!verified.ok) return verified;
      const current = verified.value === undefined ? undefined : readClaims(verified.value, clock.nowMs());
      return current === undefined ? fail(REFUSED) : ok(current);
    },
  };
}

/** The `kid` a token claims to be signed with. It only ever selects among the keys in memory. */
function keyIdOf(token: string): string | undefined {
  const kid = mappingIn(Buffer.from(token.slice(0, token.indexOf('.')), 'base64url').toString())?.kid;
  return typeof kid === 'string' ? kid : undefined;
}
