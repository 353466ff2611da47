/** The credentials of a gateway: API keys, tokens and their signing keys, revocations, tickets. */
import { setTimeout as pause } from 'node:timers/promises';
import { ok, type Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import type { AuditLog, Clock } from '../ports/ports.ts';
import { ApiKeyDeletion } from './api-key-start.ts';
import type { ApiKeyStore } from './api-key-store.ts';
import { ApiKeys } from './api-keys.ts';
import { type Authenticator, createAuthenticator } from './authenticate.ts';
import { RevocationList, type RevocationStore } from './revocations.ts';
import { digestOf } from './secret-token.ts';
import type { SigningKeys } from './signing-keys.ts';
import { createTokenIssuer, type TokenIssuer, type Tokens } from './tokens.ts';
import { WsTickets } from './ws-tickets.ts';

export type CredentialsStart = {
  readonly maxOrgKeys: number;
  /** SVC_BOOTSTRAP_API_KEY: it is never deleted. */
  readonly ownKey: string | undefined;
  readonly signingKeys: SigningKeys;
  readonly keyStore: ApiKeyStore;
  /** Other gateways may write to it. */
  readonly isKeyStoreShared: boolean;
  readonly revocationStore: RevocationStore;
  readonly tokens: Tokens;
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
  maxOrgKeys,
  ownKey,
  signingKeys,
  keyStore,
  isKeyStoreShared,
  revocationStore,
  tokens,
  audit,
  clock,
  onError,
}: CredentialsStart): Promise<Result<Credentials, Fault>> {
  const revocations = new RevocationList({
    store: revocationStore,
    clock,
    onError: (message, error) => onError(error, message),
  });
  const opened = await ApiKeys.open({
    store: keyStore,
    audit,
    clock,
    maxOrgKeys,
    pauseBetweenLooks: isKeyStoreShared ? () => pause(LOOK_EVERY_MS, undefined, { ref: false }) : undefined,
  });
  if (!opened.ok) return opened;
  const apiKeys = opened.value;
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
