/**
 * Connections to PostgreSQL: limited in number, time and queue, and restored by themselves after an outage of the
 * database.
 */
import { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { assert, fail, ok, type Result } from '../../core/base/result.ts';
import type { Fault } from '../../core/fault.ts';
import { within } from '../../system/clock.ts';
import type { TroubleLog } from '../../system/log.ts';
import { begin, type Verdict, verdictOn } from './commit-verdict.ts';
import { isRefusal, isShutOut, meansUnreachable, TOO_MANY_CONNECTIONS } from './errors.ts';
import { MigrationError, migrate, schemaTrouble } from './migrate.ts';
import { Outage } from './outage.ts';
import type { Queryable } from './queryable.ts';

/**
 * A connection of the pool that reports a failed construction when it connects. The driver's constructor throws, for
 * example if a certificate named in the URL is missing while it is being renewed, and the pool also constructs
 * connections where nothing could catch that.
 */
class PoolClient extends pg.Client {
  constructor(options?: pg.ClientConfig) {
    try {
      super(options);
    } catch (error) {
      super({});
      Object.assign(this, { connect: (callback: (error: unknown) => void) => process.nextTick(callback, error) });
    }
  }
}

export type PostgresOptions = {
  /** `postgres://user:password@host:port/database?sslmode=…`; never logged, it holds the password. */
  readonly url: string;
  readonly maxConnections: number;
  readonly connectTimeoutMs: number;
  /** The server gives a statement up after this long; the client waits a second longer, in case the server is gone. */
  readonly statementTimeoutMs: number;
  /** How long running queries may take to end when the pool is closed; then their connections are cut. */
  readonly closeTimeoutMs: number;
};

export const POSTGRES_DEFAULTS = {
  maxConnections: 10,
  connectTimeoutMs: 3000,
  statementTimeoutMs: 5000,
  closeTimeoutMs: 500,
} as const;
/** With more callers waiting, the last could not be served before their time-out anyway. */
const WAITERS_PER_CONNECTION = 50;
const RETRY_AFTER_SECS = 2;
const RECONNECT_PAUSE_MS = 1000;
/** How often a database that was cut off during a commit is asked what became of it. */
const VERDICT_PAUSE_MS = 100;
/**
 * For single statements: if the database's default is stricter, the later of two that change one row would be refused.
 */
const ISOLATION = `SET default_transaction_isolation = 'read committed'`;
const WHAT_TO_CHECK = 'check the user, password and database in SVC_DATABASE_URL';
/** In milliseconds. Readiness probes often give up after a second. */
const PROBE_MS = 800;

const UNREACHABLE: Fault = { kind: 'store_unreachable', retryAfterSecs: RETRY_AFTER_SECS };

/** Crosses the use case that runs inside a transaction; `attempt` and `transact` turn it into the fault. */
class Unreachable extends Error {
  override readonly name = 'Unreachable';
}

/** A transaction whose end has been asked for. */
type Commit<T> = { sent: { readonly nonce: string; readonly result: Result<T, Fault> } | undefined };

export class Postgres {
  readonly #pool: pg.Pool;
  readonly #options: PostgresOptions;
  readonly #log: TroubleLog;
  readonly #outage: Outage;
  readonly #anyConnection: Queryable = { query: (text, values) => this.#query(this.#pool, text, values) };
  /** Sockets of all connections, the migration's too. */
  readonly #sockets = new Set<Socket>();
  #migration: Promise<void> | undefined;
  /** The connection of a migration that runs or waits. */
  #migrating: pg.Client | undefined;
  #probing: Promise<boolean> | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: PostgresOptions, log: TroubleLog) {
    this.#options = options;
    this.#log = log;
    const probe = (): Promise<boolean> => this.#probe().catch(() => false); // `start` reports why it cannot be migrated
    this.#outage = new Outage({ log, probe, isClosing: () => this.#closing !== undefined });
    this.#pool = new pg.Pool({
      ...this.#clientOptions(),
      Client: PoolClient,
      max: options.maxConnections,
      idleTimeoutMillis: 30_000,
      pipeline: true, // queries issued together on one connection are sent together: the database may be far away
      query_timeout: options.statementTimeoutMs + 1000,
      onConnect: (client) => this.#limit(client),
    });
    // An idle connection that breaks has no caller to notify, and the pool has dropped it already. A proxy or pooler
    // may have found it idle for too long, and others with it: the database is probed when these are gone, too.
    this.#pool.on('error', () => void setTimeout(probe, RECONNECT_PAUSE_MS).unref());
  }

  /**
   * Resolves when the schema is up to date, however long the database takes to appear, or when `close` is called.
   * Rejects with a MigrationError, or the server's own error about a step, when waiting will not help.
   */
  async start(): Promise<void> {
    while (this.#closing === undefined) {
      const result = await this.attempt(async () => undefined);
      if (result.ok) return;
      await sleep(RECONNECT_PAUSE_MS, undefined, { ref: false });
    }
  }

  /** Whether an outage is known of. The database itself is not asked. */
  get isAway(): boolean {
    return this.#outage.isOn;
  }

  /** The message of the last failure. */
  get trouble(): string | undefined {
    return this.#outage.trouble;
  }

  /** For the readiness probe: whether the database answers promptly, takes writes, and has its tables. */
  async isReachable(): Promise<boolean> {
    return (await within(PROBE_MS, this.#probe())) ?? false;
  }

  /** Runs single statements, each on any connection. Fault: `store_unreachable`. */
  attempt<T>(work: (queryable: Queryable) => Promise<T>): Promise<Result<T, Fault>> {
    return this.#faulting(async () => {
      await this.#migrated();
      return ok(await work(this.#anyConnection));
    });
  }

  /**
   * Queries that `work` issues without waiting for answers in between are pipelined: sent at once, and executed in that
   * order. Commits when `work` resolves with a value; rolls back when it resolves with a fault or rejects. When the
   * database is cut off before it says whether it has committed, as in a fail-over, it is asked again: a caller who was
   * told that nothing has happened would do again what can be done only once. Fault: `store_unreachable`.
   */
  transact<T>(work: (queryable: Queryable) => Promise<Result<T, Fault>>): Promise<Result<T, Fault>> {
    return this.#faulting(async () => {
      await this.#migrated();
      const commit: Commit<T> = { sent: undefined };
      try {
        return await this.#transactOnce(work, commit);
      } catch (error) {
        const { sent } = commit;
        if (sent === undefined || !(error instanceof Unreachable) || !(await this.#hasCommitted(sent.nonce)))
          throw error;
        return sent.result;
      }
    });
  }

  #transactOnce<T>(
    work: (queryable: Queryable) => Promise<Result<T, Fault>>,
    commit: Commit<T>,
  ): Promise<Result<T, Fault>> {
    return this.#onOneConnection(async (connection) => {
      let begun: Promise<string> | undefined;
      const transaction: Queryable = {
        query: async (text, values) => {
          begun ??= begin(connection);
          // Sent without waiting for the transaction to begin. If it cannot begin, this rejects, and nothing more is
          // sent.
          const [, answer] = await Promise.all([begun, connection.query<never>(text, values)]);
          return answer;
        },
      };
      const result = await work(transaction);
      if (begun === undefined) return result;
      if (result.ok) commit.sent = { nonce: await begun, result };
      await transaction.query(result.ok ? 'COMMIT' : 'ROLLBACK');
      return result;
    });
  }

  /** When `work` rejects, the connection is rolled back, or given up. */
  async #onOneConnection<T>(work: (connection: Queryable) => Promise<T>): Promise<T> {
    const client = await this.#connect();
    // While a connection is out, the pool does not listen for it; without a listener a lost one ends the process.
    const onError = (error: Error): void => this.#outage.lost(error);
    client.on('error', onError);
    let broken = false;
    try {
      return await work({ query: (text, values) => this.#query(client, text, values) });
    } catch (error) {
      // The server rolls back whatever a lost connection left open; asking a silent one would only take longer.
      broken =
        error instanceof Unreachable ||
        (await this.#query(client, 'ROLLBACK').then(
          () => false,
          () => true,
        ));
      throw error;
    } finally {
      client.off('error', onError);
      client.release(broken);
    }
  }

  /** False also when that cannot be found out in the time of a statement. */
  async #hasCommitted(nonce: string): Promise<boolean> {
    const endMs = performance.now() + this.#options.statementTimeoutMs;
    while (this.#closing === undefined && performance.now() < endMs) {
      const verdict = await this.#verdictOn(nonce);
      if (verdict !== 'in progress') return verdict === 'committed';
      await sleep(VERDICT_PAUSE_MS);
    }
    return false;
  }

  /** While the database is away, nothing is decided. */
  async #verdictOn(nonce: string): Promise<Verdict> {
    try {
      return await verdictOn(nonce, this.#anyConnection);
    } catch (error) {
      if (error instanceof Unreachable) return 'in progress';
      throw error;
    }
  }

  /**
   * Running queries are finished, but for a migration, and cut off when they take too long; later ones fail with
   * `store_unreachable`. Resolves when no connection is left.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    // The driver waits for the server to close the connection, which one that is stopped or cut off from the network
    // never does. With an error: without one, it never settles a `connect` that is being ended.
    const cut = setTimeout(() => {
      for (const socket of this.#sockets) socket.destroy(new Error('closing'));
    }, this.#options.closeTimeoutMs);
    // It may wait for another gateway's, or for a server that will never answer; what it leaves open the server undoes.
    void this.#migrating?.end().catch((error: Error) => this.#outage.lost(error));
    await this.#migration?.catch(() => undefined); // reported to its caller
    await this.#pool.end();
    await Promise.all(Array.from(this.#sockets, (socket) => new Promise((resolve) => socket.once('close', resolve))));
    clearTimeout(cut);
  }

  async #faulting<T>(work: () => Promise<Result<T, Fault>>): Promise<Result<T, Fault>> {
    if (this.#closing !== undefined) return fail(UNREACHABLE);
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error;
      return fail(UNREACHABLE);
    }
  }

  async #connect(): Promise<pg.PoolClient> {
    this.#refuseWhenFull();
    try {
      return await this.#pool.connect();
    } catch (error) {
      throw this.#classified(error);
    }
  }

  async #query<Row extends object>(on: pg.Pool | pg.ClientBase, text: string, values: readonly unknown[] = []) {
    if (on === this.#pool) this.#refuseWhenFull();
    try {
      const { rows, rowCount } = await on.query<Row & pg.QueryResultRow>(text, [...values]);
      return { rows, rowCount: rowCount ?? 0 };
    } catch (error) {
      throw this.#classified(error);
    }
  }

  #refuseWhenFull(): void {
    if (this.#pool.waitingCount >= this.#options.maxConnections * WAITERS_PER_CONNECTION)
      throw new Unreachable('queue full');
  }

  /** Once per process, again after a failure; many callers share one attempt. */
  #migrated(): Promise<void> {
    this.#migration ??= this.#migrate().catch((error: unknown) => {
      this.#migration = undefined;
      throw error;
    });
    return this.#migration;
  }

  async #migrate(): Promise<void> {
    // Its own connection: a migration may take longer than any statement of the pool.
    const client = new pg.Client(this.#clientOptions());
    client.on('error', (error) => this.#outage.lost(error));
    this.#migrating = client;
    try {
      await client.connect();
      const applied = await migrate(client);
      const trouble = await schemaTrouble({ query: (text, values) => this.#query(client, text, values) });
      if (trouble !== undefined) throw new MigrationError(trouble);
      if (applied.length > 0) this.#log.info('migrated the account store', { migrations: applied });
    } catch (error) {
      throw error instanceof MigrationError || isRefusal(error) ? error : this.#classified(error);
    } finally {
      this.#migrating = undefined;
      await client.end().catch((error: Error) => this.#outage.lost(error));
    }
  }

  #classified(error: unknown): unknown {
    assert(error instanceof Error, 'the driver throws errors');
    if (!meansUnreachable(error) && !isRefusal(error)) return error;
    const isShut = isShutOut(error);
    const unreachable = new Unreachable(
      isShut
        ? `${error.message}; ${WHAT_TO_CHECK}`
        : 'code' in error && error.code === TOO_MANY_CONNECTIONS
          ? `${error.message}: ${this.#howToShare()}`
          : error.message,
    );
    this.#outage.lost(unreachable, isShut);
    return unreachable;
  }

  /** By a statement, because poolers such as PgBouncer refuse whoever asks for it while connecting. */
  async #limit(client: pg.ClientBase): Promise<void> {
    const ms = this.#options.statementTimeoutMs;
    await client.query(
      `SET statement_timeout = ${ms}; SET lock_timeout = ${ms}; SET idle_in_transaction_session_timeout = ${2 * ms}; ${ISOLATION}`,
    );
  }

  #howToShare(): string {
    return `it accepts no more connections; raise its max_connections, or lower SVC_DATABASE_POOL (here ${this.#options.maxConnections}) on the gateways that share it`;
  }

  #clientOptions(): pg.ClientConfig {
    return {
      connectionString: this.#options.url,
      application_name: 'svc-gateway',
      connectionTimeoutMillis: this.#options.connectTimeoutMs,
      keepAlive: true,
      stream: () => {
        const socket = new Socket();
        this.#sockets.add(socket.once('close', () => this.#sockets.delete(socket)));
        return socket;
      },
    };
  }

  /**
   * Probes run one at a time, however many ask, and in one round trip: the database may be far away. A failed probe
   * costs its connection: after a fail-over, pooled connections lead to a server that takes no writes any more, and new
   * ones to its successor.
   */
  #probe(): Promise<boolean> {
    this.#probing ??= this.#faulting(async () => {
      await this.#migrated();
      return this.#onOneConnection(async (connection) => {
        const [
          {
            rows: [row],
          },
          lacking,
        ] = await Promise.all([
          connection.query<{ isReadOnly: boolean }>(
            `SELECT current_setting('transaction_read_only')::boolean AS "isReadOnly"`,
          ),
          schemaTrouble(connection),
        ]);
        const trouble = row?.isReadOnly === true ? 'it is read-only' : lacking;
        if (trouble === undefined) return ok(undefined);
        const error = new Unreachable(trouble);
        this.#outage.lost(error);
        throw error;
      });
    })
      .then(({ ok: answers }) => answers)
      .finally(() => {
        this.#probing = undefined;
      });
    return this.#probing;
  }
}
