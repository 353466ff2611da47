/** Who may ask the gateway for what: API keys, tokens and, where there is a database, accounts. */

import type { Config } from '../config/config.ts';
import { publicUrlOf } from '../config/urls.ts';
import { isLoopback } from '../core/base/client-address.ts';
import { ok } from '../core/base/result.ts';
import { accountIdOf } from '../core/identity/account.ts';
import { holds, SCOPES_OF_ROLE } from '../core/identity/roles.ts';
import { type IsStillAdmin, isKeyInForce } from '../credentials/api-key-admin.ts';
import { type Bootstrap, bootstrapOf } from '../credentials/api-key-start.ts';
import { lineageOf } from '../credentials/lineage.ts';
import { endMadeKeys } from '../credentials/made-keys.ts';
import { type Credentials, openCredentials } from '../credentials/open.ts';
import { mintSecret } from '../credentials/secret-token.ts';
import { createEmbeddedApiKeyStore } from '../stores/embedded/api-keys.ts';
import { createEmbeddedRevocationStore } from '../stores/embedded/revocations.ts';
import { createSteadyClock, within } from '../system/clock.ts';
import { createTokens } from '../threads/crypto/tokens.ts';
import type { FindLineage } from '../use-cases/approvals.ts';
import { withWebhooks } from '../use-cases/webhooks.ts';
import type { RunningAccounts } from './start-accounts.ts';
import type { StartContext } from './start-context.ts';
import type { Decisions } from './start-decisions.ts';
import type { Resources } from './start-resources.ts';
import type { Threads } from './start-threads.ts';
import { flushKeys } from './timers.ts';

/** Promised mails get at least this long, even where requests have used up the grace period of the shutdown. */
const LEAST_LATE_GRACE_MS = 1_000;

export type Identity = {
  readonly credentials: Credentials;
  readonly accounts: RunningAccounts | undefined;
  /** The start's action on the first API key. */
  readonly bootstrap: Bootstrap;
  /** There could be accounts, and nobody has one. */
  readonly isWithoutAccounts: boolean;
  /** The proof that the operator makes the first account; undefined: none is needed. */
  readonly setupSecret: string | undefined;
  readonly findLineage: FindLineage;
  readonly isStillAdmin: IsStillAdmin;
};

export async function openIdentity(
  { config, wait }: StartContext,
  { crypto, database, onError, signingKeys, store }: Resources,
  { audit, clock, threads }: Threads,
): Promise<Credentials> {
  const frame = { issuer: config.SVC_JWT_ISSUER, audience: config.SVC_JWT_AUDIENCE };
  const tokens = createTokens({ lane: crypto.tokenLane, keys: signingKeys, clock, frame });
  const open = () =>
    openCredentials({
      maxOrgKeys: config.SVC_MAX_ORG_API_KEYS,
      ownKey: config.SVC_BOOTSTRAP_API_KEY,
      signingKeys,
      tokens,
      audit,
      clock,
      onError,
      keyStore: database?.apiKeys ?? createEmbeddedApiKeyStore(store),
      isKeyStoreShared: database !== undefined,
      revocationStore: createEmbeddedRevocationStore(store),
    });
  const credentials = await wait.value(open, () => database?.postgres.trouble);
  credentials.authenticator.onRevoked((subject) => threads.broadcast({ type: 'revoked', subject }));
  return credentials;
}

/** Once the audit log is open: makes the first API key if there is none, and readies the accounts. */
export async function startIdentity(
  context: StartContext,
  { crypto, database, onError }: Resources,
  { audit, supervisor }: Threads,
  { recording: { events }, webhooks }: Pick<Decisions, 'recording' | 'webhooks'>,
  credentials: Credentials,
): Promise<Identity> {
  const { config, log, wait, closers } = context;
  const { apiKeys, issuer, revocations } = credentials;
  const trouble = (): string | undefined => database?.postgres.trouble;
  const bootstrap = await wait.value(bootstrapOf(apiKeys, config.SVC_BOOTSTRAP_API_KEY), trouble);
  const setup = database !== undefined && needsSetup(config) ? mintSecret() : undefined;
  const accounts =
    database &&
    (await import('./start-accounts.ts')).startAccounts({
      config,
      database,
      audit,
      log,
      revocations,
      clock: createSteadyClock(),
      passwords: crypto.passwords,
      tokens: issuer,
      isKeyRevoked: (subject) => apiKeys.isRevoked(subject),
      endMade: async (asked) => {
        await apiKeys.lookAround(); // other gateways may have made some for it
        return withWebhooks(webhooks, await endMadeKeys(apiKeys, asked), asked);
      },
      setup: setup && { token: setup.digest, isAdmin: (bearer) => isAdminOfAll(credentials, bearer) },
      publicUrl: () => publicUrlOf(config, supervisor.httpPort),
      events: {
        publish: ({ orgId, atMs, accountId: account_id, ...payload }) =>
          events.publish({ kind: 'account', orgId, agentId: null, atMs, payload: { account_id, ...payload } }),
      },
    });
  // A database that does not answer delays neither of them longer than that.
  closers.add('e-mails and API keys', (grace) => {
    const leftMs = grace.leftMs(LEAST_LATE_GRACE_MS);
    return Promise.all([accounts?.stop(leftMs), within(leftMs, flushKeys(apiKeys, log, onError))]);
  });
  if (accounts !== undefined) await wait.value(() => accounts.start(), trouble);
  const isWithoutAccounts = accounts !== undefined && (await wait.value(() => accounts.isEmpty(), trouble));
  return {
    ...{ credentials, accounts, bootstrap, isWithoutAccounts, setupSecret: setup?.secret },
    findLineage: lineageIn(credentials, accounts),
    isStillAdmin: admins(credentials, accounts),
  };
}

const lineageIn =
  ({ apiKeys }: Credentials, accounts: RunningAccounts | undefined): FindLineage =>
  (subject) =>
    lineageOf(
      {
        apiKeys,
        accountOf: async (account) => {
          if (accounts === undefined) return ok(undefined);
          const found = await accounts.useCases.me({ principal: { subject: account, scopes: [], orgId: null } });
          return found.ok || found.fault.kind !== 'unauthenticated' ? found : ok(undefined);
        },
      },
      subject,
    );

/** A key may have been revoked meanwhile, and an account be gone or demoted. */
const admins =
  ({ apiKeys }: Credentials, accounts: RunningAccounts | undefined): IsStillAdmin =>
  async (principal) => {
    if (accountIdOf(principal.subject) === undefined) {
      await apiKeys.lookAround();
      return isKeyInForce(apiKeys, principal.subject);
    }
    const found = await accounts?.useCases.me({ principal });
    return found?.ok === true && !found.value.disabled && holds(SCOPES_OF_ROLE[found.value.role], 'admin');
  };

async function isAdminOfAll({ authenticator }: Credentials, bearer: string): Promise<boolean> {
  const known = await authenticator.authenticate(bearer);
  if (!known.ok) return false;
  const { scopes, orgId } = known.value.principal;
  return orgId === null && holds(scopes, 'admin');
}

/** Whether the first account needs proof that the operator makes it. */
const needsSetup = ({ SVC_AUTH_FIRST_ACCOUNT: chosen, SVC_HTTP_ADDR: { host } }: Config): boolean =>
  chosen === 'setup' || (chosen === undefined && !isLoopback(host));
