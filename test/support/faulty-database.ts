/** A PostgreSQL of its own for a cluster under test, which can be killed, or fall back to an older state. */
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import type { EmbeddedPostgres } from '../../src/stores/trial-postgres/trial-postgres.ts';
import { startTestPostgres } from './database-server.ts';

const GONE = /vanished|No such file/;

export class FaultyDatabase {
  readonly #folder: string;
  #dataDir: string;
  #server: EmbeddedPostgres;
  #copies = 0;

  private constructor(folder: string, server: EmbeddedPostgres) {
    this.#folder = folder;
    this.#dataDir = folder;
    this.#server = server;
  }

  static async start(folder: string): Promise<FaultyDatabase> {
    return new FaultyDatabase(folder, await startTestPostgres({ dataDir: folder }));
  }

  /** Changes when a copy takes over. */
  get url(): string {
    return this.#server.url;
  }

  /** Without a checkpoint, as when the machine dies; it comes back by itself. */
  kill(): void {
    const path = join(clusterIn(this.#dataDir), 'postmaster.pid');
    if (existsSync(path)) process.kill(Number(readFileSync(path, 'utf8').split('\n')[0]), 'SIGKILL');
  }

  /**
   * Copies it as it is now, as a standby has it that lags from then on. What is returned has the copy take over, as in an
   * asynchronous fail-over: what was written since is lost.
   */
  async copy(): Promise<() => Promise<void>> {
    this.#copies += 1;
    const standby = join(this.#folder, `standby-${this.#copies}`);
    await mkdir(join(standby, 'postgres'), { recursive: true, mode: 0o700 });
    const client = new pg.Client({ connectionString: this.url });
    await client.connect();
    try {
      await client.query("SELECT pg_backup_start('standby', true)");
      for (const file of ['password', 'cluster']) await copyRunning(join(this.#dataDir, 'postgres', file), standby);
      const { rows } = await client.query<{ labelfile: string }>('SELECT labelfile FROM pg_backup_stop(false)');
      await writeFile(join(clusterIn(standby), 'backup_label'), rows[0]!.labelfile);
      // With what was written while the files were copied.
      await cp(join(clusterIn(this.#dataDir), 'pg_wal'), join(clusterIn(standby), 'pg_wal'), { recursive: true });
      await rm(join(clusterIn(standby), 'postmaster.pid'), { force: true });
    } finally {
      await client.end();
    }
    return async () => {
      await this.#server.stop(0);
      this.#server = await startTestPostgres({ dataDir: standby });
      this.#dataDir = standby;
    };
  }

  stop(): Promise<void> {
    return this.#server.stop(0);
  }
}

const clusterIn = (dataDir: string): string => join(dataDir, 'postgres', 'cluster');

/** A server that runs removes files meanwhile; what was in them is in its log. */
async function copyRunning(from: string, standby: string): Promise<void> {
  await promisify(execFile)('cp', ['-a', from, join(standby, 'postgres')], {
    env: { ...process.env, LC_ALL: 'C' },
  }).catch((error: { readonly stderr?: string }) => {
    if (!GONE.test(error.stderr ?? '')) throw error;
  });
}
