/** The credentials of a gateway: API keys, tokens and their signing keys, revocations, tickets. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Config } from './config.ts';
import type { Fault } from './core/fault.ts';
import { ok, type Result } from './core/result.ts';
import { ApiKeyDeletion } from './gateway/api-key-deletion.ts';
import type { ApiKeyStore } from './gateway/api-key-store.ts';
import { ApiKeys } from './gateway/api-keys.ts';
import { type Authenticator, createAuthenticator } from './gateway/authenticate.ts';
import type { AuditLog, Clock } from './gateway/ports.ts';
import { RevocationList, type RevocationStore } from './gateway/revocations.ts';
import { digestOf } from './gateway/secret-token.ts';
import type { SigningKeys } from './gateway/signing-keys.ts';
import { createTokenIssuer, type TokenIssuer } from './gateway/tokens.ts';
import { WsTickets } from './gateway/ws-tickets.ts';
import type { CryptoPool } from './threads/crypto-pool.ts';
import { createTokens } from './threads/tokens.ts';

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
 * The database is asked for keys that are not known here at most this often. Whoever presents a wrong one may wait that
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
