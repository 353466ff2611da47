/** The database of accounts and API keys: a server's, or one of the gateway's own to try accounts out. */
import { messageOf } from '../core/base/text.ts';
import type { ApiKeyStore } from '../credentials/api-key-store.ts';
import type { Logger } from '../system/log.ts';
import { StartError } from '../system/start-error.ts';
import { createEmbeddedApiKeyStore } from './embedded/api-keys.ts';
import type { EmbeddedStore } from './embedded/store.ts';
import { createPostgresApiKeyStore, moveApiKeys } from './postgres/api-keys.ts';
import { POSTGRES_DEFAULTS, Postgres } from './postgres/postgres.ts';
import type { StartWait } from './postgres/start-wait.ts';
import { startEmbeddedPostgres } from './trial-postgres/trial-postgres.ts';

export type Database = {
  readonly postgres: Postgres;
  readonly apiKeys: ApiKeyStore;
  /**
   * An embedded database gets this long to write a checkpoint. Without one it loses nothing, but has to recover at the
   * next start.
   */
  close(timeoutMs?: number): Promise<void>;
};

export type DatabaseStart = {
  readonly url: string;
  /** Keeps the gateway's own database, if it has one. */
  readonly dataDir: string;
  readonly maxConnections: number;
  /** The embedded store. */
  readonly store: EmbeddedStore;
  readonly log: Logger;
  readonly signal: AbortSignal;
  readonly wait: StartWait;
};

/**
 * Opens the database of SVC_DATABASE_URL, migrates it, and takes over the API keys of the embedded store. Rejects with
 * a message for the operator; promptly, and with nothing left running, when `signal` is aborted.
 */
export async function openDatabase({
  url,
  dataDir,
  maxConnections,
  store,
  log,
  signal,
  wait,
}: DatabaseStart): Promise<Database> {
  const own = url === 'embedded' ? await startEmbeddedPostgres({ dataDir, signal }, log) : undefined;
  let postgres: Postgres | undefined;
  const close = async (timeoutMs?: number): Promise<void> => {
    await postgres?.close();
    await own?.stop(timeoutMs);
  };
  try {
    // Reads the certificates that the URL names.
    const opened = new Postgres({ url: own?.url ?? url, ...POSTGRES_DEFAULTS, maxConnections }, log);
    postgres = opened;
    const trouble = (): string | undefined => opened.trouble;
    const apiKeys = createPostgresApiKeyStore(opened);
    await wait.until(opened.start(), trouble);
    const moved = await wait.value(() => moveApiKeys(store, createEmbeddedApiKeyStore(store), apiKeys), trouble);
    if (moved > 0) log.info('moved the API keys from the embedded store to the database', { keys: moved });
    return { postgres: opened, apiKeys, close };
  } catch (error) {
    await close();
    if (error instanceof StartError) throw error;
    throw new Error(`cannot use the database in SVC_DATABASE_URL: ${messageOf(error)}`, { cause: error });
  }
}
