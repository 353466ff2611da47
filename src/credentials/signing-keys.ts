import type { Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';

/** A public key as `/.well-known/jwks.json` shows it (RFC 7517, RFC 8037). */
export type PublicJwk = {
  readonly kty: 'OKP';
  readonly crv: 'Ed25519';
  readonly x: string;
  readonly kid: string;
  readonly use: 'sig';
  readonly alg: 'EdDSA';
};

/**
 * The keys that sign access tokens. A single key signs; its predecessors still verify until their last tokens have
 * expired.
 */
export type SigningKeys = {
  signer(): { readonly kid: string; readonly privateKeyPem: string };
  /** The public key of that id, while it is in force. */
  verifier(kid: string): string | undefined;
  jwks(): { readonly keys: readonly PublicJwk[] };
  /**
   * A new key signs from here on. Fault `conflict` when the key is given by the operator, who then rotates it there.
   */
  rotate(): Promise<Result<{ readonly kid: string }, Fault>>;
  /** Takes over what was changed on disk. Rejects, keeping the keys in force, when that is unusable. */
  reload(): Promise<{ readonly kid: string; readonly changed: boolean }>;
};
