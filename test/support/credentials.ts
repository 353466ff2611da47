/** API keys, tokens and what checks them, on a real store and real crypto threads, with a clock that the test sets. */
import { afterAll } from 'vitest';
import { ApiKeys } from '../../src/credentials/api-keys.ts';
import { createAuthenticator } from '../../src/credentials/authenticate.ts';
import { RevocationList } from '../../src/credentials/revocations.ts';
import { openSigningKeys } from '../../src/credentials/signing-key-files.ts';
import { createTokenIssuer } from '../../src/credentials/tokens.ts';
import { createEmbeddedApiKeyStore } from '../../src/stores/embedded/api-keys.ts';
import { createEmbeddedRevocationStore } from '../../src/stores/embedded/revocations.ts';
import { type CryptoPool, createCryptoPool } from '../../src/threads/crypto/pool.ts';
import { createTokens } from '../../src/threads/crypto/tokens.ts';
import { must, temporaryFolder, temporaryStore, testAudit, testClock } from './harness.ts';

export const FRAME = { issuer: 'svc-gateway', audience: 'svc-gateway' } as const;

/** A single pool serves a whole test file, because threads take longer to start than a test. */
export function testCryptoPool(): CryptoPool {
  const pool = createCryptoPool({
    threads: 1,
    cost: { memoryKib: 1024, iterations: 1, parallelism: 1 },
    uvThreads: 4,
    maxPasswordQueue: 64,
    onError: (message, cause) => {
      throw new Error(`${message}: ${cause}`);
    },
  });
  afterAll(() => pool.close());
  return pool;
}

/** `reopen` reads the store again, as a restarted gateway does. */
export async function openTestCredentials(pool: CryptoPool) {
  const clock = testClock();
  const audit = testAudit();
  const dataDir = temporaryFolder();
  const store = temporaryStore(dataDir);
  const signingKeys = await openSigningKeys({ dataDir, given: undefined, clock });
  const tokens = createTokens({ lane: pool.tokenLane, keys: signingKeys, clock, frame: FRAME });
  const reopen = async () => {
    const apiKeys = must(
      await ApiKeys.open({ store: createEmbeddedApiKeyStore(store), audit, clock, maxOrgKeys: 1_000 }),
    );
    const revocations = new RevocationList({
      store: createEmbeddedRevocationStore(store),
      clock,
      onError: (message) => {
        throw new Error(message);
      },
    });
    const issuer = createTokenIssuer({ apiKeys, tokens, audit, clock });
    return { apiKeys, revocations, issuer, authenticator: createAuthenticator({ apiKeys, tokens, revocations }) };
  };
  return { ...(await reopen()), clock, audit, signingKeys, tokens, reopen };
}
