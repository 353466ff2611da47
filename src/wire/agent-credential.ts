import { randomBytes } from 'node:crypto';
import type { SecretDigest } from '../core/ids.ts';
import { digestOf } from '../gateway/secret-token.ts';

/** What an agent may bring as its own token: 32 to 1024 visible ASCII characters (contract: gRPC, RegisterAgent). */
export const isAgentCredential = (token: string): boolean => /^[\x21-\x7e]{32,1024}$/.test(token);

export const CREDENTIAL_RULE = 'must be 32 to 1024 visible ASCII characters; omit it to have one generated';

const TOKEN_BYTES = 32;

/** The token that is given, or a fresh one of 256 bits, with the digest that the gateway keeps of it. */
export function agentCredential(given: string | undefined): {
  readonly token: string;
  readonly digest: SecretDigest;
  readonly isMinted: boolean;
} {
  const token = given ?? `svcagent_${randomBytes(TOKEN_BYTES).toString('base64url')}`;
  return { token, digest: digestOf(token), isMinted: given === undefined };
}
