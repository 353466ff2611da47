/** The credentials of a gateway: API keys, tokens and their signing keys, revocations, tickets. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Config } from '../config/config.ts';
import { ok, type Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import { ApiKeyDeletion } from '../credentials/api-key-start.ts';
import type { ApiKeyStore } from '../credentials/api-key-store.ts';
import { ApiKeys } from '../credentials/api-keys.ts';
import { type Authenticator, createAuthenticator } from '../credentials/authenticate.ts';
import { RevocationList, type RevocationStore } from '../credentials/revocations.ts';
import { digestOf } from '../credentials/secret-token.ts';
import type { SigningKeys } from '../credentials/signing-keys.ts';
import { createTokenIssuer, type TokenIssuer } from '../credentials/tokens.ts';
import { WsTickets } from '../credentials/ws-tickets.ts';
import type { AuditLog, Clock } from '../ports/ports.ts';
import type { CryptoPool } from '../threads/crypto/pool.ts';
import { createTokens } from '../threads/crypto/tokens.ts';

export type CredentialsStart = {
  readonly config: Config;
  readonly signingKeys: SigningKeys;
  readonly keyStore: ApiKeyStore;
  /** Other gateways may write to it. */
  readonly isKeyStoreShared: boolean;
  readonly revocationStore: RevocationStore;
  readonly crypto: CryptoPool;
  readonly audit: AuditLog;
  readonly clock: Clock;
  readonly onError: (error: unknown, doing: string) => void;
};

export type Credentials = {
  readonly signingKeys: SigningKeys;
  readonly apiKeys: ApiKeys;
  readonly keyDeletion: ApiKeyDeletion;
  readonly revocations: RevocationList;
  readonly authenticator: Authenticator;
  readonly issuer: TokenIssuer;
  readonly tickets: WsTickets;
};

/**
 * The database is asked for keys that are not known here at most this often. A caller with a wrong one may wait that
 * long.
 */
const LOOK_EVERY_MS = 250;

/** Faults: those of reading the store of API keys. */
export async function openCredentials({
  config,
  signingKeys,
  keyStore,
  isKeyStoreShared,
  revocationStore,
  crypto,
  audit,
  clock,
  onError,
}: CredentialsStart): Promise<Result<Credentials, Fault>> {
  const frame = { issuer: config.SVC_JWT_ISSUER, audience: config.SVC_JWT_AUDIENCE };
  const tokens = createTokens({ lane: crypto.tokenLane, keys: signingKeys, clock, frame });
  const revocations = new RevocationList({
    store: revocationStore,
    clock,
    onError: (message, error) => onError(error, message),
  });
  const opened = await ApiKeys.open({
    store: keyStore,
    audit,
    clock,
    maxOrgKeys: config.SVC_MAX_ORG_API_KEYS,
    pauseBetweenLooks: isKeyStoreShared ? () => pause(LOOK_EVERY_MS, undefined, { ref: false }) : undefined,
  });
  if (!opened.ok) return opened;
  const apiKeys = opened.value;
  const ownKey = config.SVC_BOOTSTRAP_API_KEY;
  const keyDeletion = new ApiKeyDeletion({
    store: keyStore,
    clock,
    kept: ownKey === undefined ? undefined : digestOf(ownKey),
  });
  const authenticator = createAuthenticator({ apiKeys, tokens, revocations });
  const issuer = createTokenIssuer({ apiKeys, tokens, audit, clock });
  return ok({
    signingKeys,
    apiKeys,
    keyDeletion,
    revocations,
    authenticator,
    issuer,
    tickets: new WsTickets({ authenticator, clock }),
  });
}
