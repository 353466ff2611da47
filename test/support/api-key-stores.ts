/** Every place where API keys may be kept. A new one is a row here, and held to the same promises. */
import { onTestFinished } from 'vitest';
import type { ApiKeyStore } from '../../src/credentials/api-key-store.ts';
import { createEmbeddedApiKeyStore } from '../../src/stores/embedded/api-keys.ts';
import { createPostgresApiKeyStore } from '../../src/stores/postgres/api-keys.ts';
import { POSTGRES_DEFAULTS, Postgres } from '../../src/stores/postgres/postgres.ts';
import { SILENT } from './database-server.ts';
import { temporaryStore } from './harness.ts';

/** Each is opened empty, until the test is over. */
export const apiKeyStores = (newDatabase: () => Promise<string>) =>
  [
    ['the embedded store', async () => createEmbeddedApiKeyStore(temporaryStore())],
    ['PostgreSQL', async () => openPostgresApiKeys(await newDatabase())],
  ] as const satisfies readonly (readonly [name: string, open: () => Promise<ApiKeyStore>])[];

export function openPostgresApiKeys(url: string): ApiKeyStore {
  const postgres = new Postgres({ url, ...POSTGRES_DEFAULTS }, SILENT);
  onTestFinished(() => postgres.close());
  return createPostgresApiKeyStore(postgres);
}
