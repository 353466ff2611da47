import { ok } from '../core/base/result.ts';
import { refuseUnlessAdminOfAll } from '../core/identity/access.ts';
import { createApiKey, type IsStillAdmin, listApiKeys, ownApiKey, revokeApiKey } from '../credentials/api-key-admin.ts';
import type { ApiKeys } from '../credentials/api-keys.ts';
import type { Authenticator } from '../credentials/authenticate.ts';
import type { SigningKeys } from '../credentials/signing-keys.ts';
import type { TokenIssuer } from '../credentials/tokens.ts';
import type { Webhooks } from '../webhooks/webhooks.ts';
import type { UseCases } from './use-cases.ts';
import { withWebhooks } from './webhooks.ts';

export type CredentialUseCases = Pick<
  UseCases,
  | 'authenticate'
  | 'exchangeToken'
  | 'createApiKey'
  | 'listApiKeys'
  | 'ownApiKey'
  | 'revokeApiKey'
  | 'rotateSigningKey'
  | 'jwks'
>;

export type CredentialUseCasesDeps = {
  readonly apiKeys: ApiKeys;
  readonly issuer: TokenIssuer;
  readonly authenticator: Authenticator;
  readonly signingKeys: SigningKeys;
  readonly isStillAdmin: IsStillAdmin;
  readonly webhooks: Pick<Webhooks, 'endMade'>;
  readonly isApproverName: (name: string) => boolean;
  /** `by`: the subject whose doing it was. The audit log has no event for it. */
  readonly onKeyRotated: (rotated: { readonly kid: string; readonly by: string }) => void;
};

/** Credential operations for I/O threads, by name. */
export function createCredentialUseCases({
  apiKeys,
  issuer,
  authenticator,
  signingKeys,
  isStillAdmin,
  webhooks,
  isApproverName,
  onKeyRotated,
}: CredentialUseCasesDeps): CredentialUseCases {
  return {
    authenticate: ({ bearer }) => authenticator.authenticate(bearer),
    exchangeToken: ({ bearer, scopes }) => issuer.exchange(bearer, scopes),
    createApiKey: ({ principal, key }) => createApiKey(apiKeys, principal, key, { isStillAdmin, isApproverName }),
    listApiKeys: ({ principal, ...asked }) => listApiKeys(apiKeys, principal, asked),
    ownApiKey: ({ principal }) => ownApiKey(apiKeys, principal),
    revokeApiKey: async ({ principal, id, cascade }) => {
      const revoked = await revokeApiKey(apiKeys, principal, id, cascade);
      return withWebhooks(webhooks, revoked, { actor: principal.subject, cascade });
    },
    // The key signs for every org, so an admin of one org does not rotate it.
    rotateSigningKey: async ({ principal }) => {
      const refused = refuseUnlessAdminOfAll(principal);
      if (refused !== undefined) return refused;
      const rotated = await signingKeys.rotate();
      if (rotated.ok) onKeyRotated({ kid: rotated.value.kid, by: principal.subject });
      return rotated;
    },
    jwks: async () => ok(signingKeys.jwks()),
  };
}
