/** The threads of the gateway: the audit log's and those of the doors, and the main thread's links to them. */

import { join } from 'node:path';
import { targetOf } from '../audit-log/witness/target.ts';
import { Witnesses } from '../audit-log/witness/witnesses.ts';
import { readSinkFile } from '../audit-sinks/sink-file.ts';
import { ClusterClock } from '../cluster/clock.ts';
import { homeOf } from '../cluster/run.ts';
import type { Config } from '../config/config.ts';
import { schemeOf, tlsPathsOf } from '../config/urls.ts';
import { isLoopback } from '../core/base/client-address.ts';
import { ok } from '../core/base/result.ts';
import type { Bounds } from '../fairness/bounded.ts';
import { createClock, type WallClock } from '../system/clock.ts';
import type { Logger } from '../system/log.ts';
import { usableMemoryMib } from '../system/machine.ts';
import { packageVersion, WEB_FOLDER } from '../system/package-files.ts';
import { orStartError, StartError } from '../system/start-error.ts';
import { readTlsFiles, TlsFiles } from '../system/tls-files.ts';
import { AuditLink, type Trouble } from '../threads/audit/audit-link.ts';
import type { RecordingOptions } from '../threads/audit/audit-thread.ts';
import { AuditReaderLink } from '../threads/audit/reader-link.ts';
import { AuditSinksLink } from '../threads/audit-sinks/sinks-link.ts';
import { passwordThreads } from '../threads/crypto/pool.ts';
import type { IoData } from '../threads/io/io-thread.ts';
import { IoThreads } from '../threads/main/io-threads.ts';
import { Supervisor } from '../threads/supervisor.ts';
import type { StartContext } from './start-context.ts';

export type Threads = {
  readonly clock: WallClock;
  /** In a cluster: what `clock` goes by. */
  readonly clusterClock: ClusterClock | undefined;
  readonly audit: AuditLink;
  readonly threads: IoThreads;
  readonly supervisor: Supervisor;
  readonly witnesses: Witnesses;
  readonly sinks: AuditSinksLink;
  /** Undefined: without TLS. */
  readonly tls: TlsFiles | undefined;
};

/** How long a stop waits for them. */
const WITNESS_GRACE_MS = 2_000;
/** Sinks get at least this long, even where the rest has used up the grace period of the shutdown. */
const LEAST_SINK_GRACE_MS = 500;

/** Throws a `StartError` that names the file which is missing or wrong. */
export function openTls({ config, log, closers }: StartContext): TlsFiles | undefined {
  const paths = tlsPathsOf(config);
  if (paths === undefined) return undefined;
  const read = readTlsFiles(paths);
  if (!read.ok) throw new StartError(read.fault);
  const files = new TlsFiles(paths, read.value, (level, message, fields) => log[level](message, fields));
  closers.add('the watch over the TLS files; everything is written', () => files.close());
  if (files.endMs <= Date.now()) log.warn('the certificate in SVC_TLS_CERT has expired', { path: paths.cert });
  return files;
}

/** Starts none of them yet. `onUnwritable` is called with the reason when the audit log cannot be written any more. */
export function createThreads(
  { config, log, closers, run, telemetry }: StartContext,
  tls: TlsFiles | undefined,
  onUnwritable: (reason: string) => void,
): Threads {
  const clusterClock = run && new ClusterClock();
  const clock = createClock(clusterClock?.nowMs);
  const threads = new IoThreads();
  const onTrouble = (trouble: Trouble): void => {
    logTrouble(trouble, config, log);
    if (!trouble.isWritable) onUnwritable(trouble.reason);
  };
  const audit = new AuditLink(clock, config.SVC_AUDIT_ON_FAILURE, onTrouble, (from) => threads.dropHeld(from));
  const witnesses = new Witnesses({
    targets: config.SVC_AUDIT_WITNESS.map((url) => targetOf(url, config.SVC_AUDIT_WITNESS_TOKEN)),
    note: (level, message, fields) => log[level](message, fields),
  });
  const sinks = createSinks(config, log, audit);
  const supervisor = new Supervisor({
    threads,
    audit,
    clock,
    ioData: ioDataOf(config, run && homeOf(run), telemetry?.tracesChecks === true ? telemetry.channel : undefined),
    tls: tls && (() => tls.current),
    ioThreads: config.SVC_IO_THREADS,
    ports: { httpPort: config.SVC_HTTP_ADDR.port, grpcPort: config.SVC_GRPC_ADDR.port },
    auditData: auditDataOf(config),
    onStatement: (statement) => witnesses.send(statement),
    note: (level, message, fields) => log[level](message, fields),
  });
  // Closed after the audit thread, whose last checkpoint they get.
  closers.add('the audit witnesses', () => witnesses.close(WITNESS_GRACE_MS));
  closers.add('the audit sinks', (grace) => sinks.close(grace.leftMs(LEAST_SINK_GRACE_MS)));
  // Closed last, when everything is written: Node.js aborts the process if a thread ends with open sockets.
  closers.add('I/O threads that did not finish; everything is written', () => supervisor.endIo());
  return { clock, clusterClock, audit, threads, supervisor, witnesses, sinks, tls };
}

/**
 * Starts the audit thread. Resolves with the id of the log's last entry. `gateway`: the name of this one in a cluster.
 */
export async function openAuditLog(
  { log, closers }: StartContext,
  { supervisor, sinks }: Threads,
  gateway: string | undefined,
): Promise<number> {
  const opened = await orStartError(supervisor.startAudit(gateway));
  closers.add('the audit log', () => supervisor.closeAudit());
  for (const note of opened.notes) log.warn(note);
  sinks.start();
  return opened.headId;
}

/** None of them is sent anything yet. */
function createSinks(config: Config, log: Logger, audit: AuditLink): AuditSinksLink {
  const path = config.SVC_AUDIT_SINKS;
  const read = path === undefined ? ok([]) : readSinkFile(path, process.env);
  if (!read.ok) throw new StartError(read.fault.join('\n'));
  return new AuditSinksLink({
    sinks: read.value,
    directory: auditFolderOf(config),
    cursorFolder: join(config.SVC_DATA_DIR, 'audit-sinks'),
    version: packageVersion(),
    lastId: () => audit.lastId,
    note: (level, message, fields) => log[level](message, fields),
  });
}

export function openAuditReader({ config, log, closers }: StartContext): AuditReaderLink {
  const read = { directory: auditFolderOf(config), isInCluster: config.SVC_CLUSTER !== undefined };
  const reader = new AuditReaderLink(read, (message) => log.error('reading the audit log failed', { error: message }));
  closers.add('the reader of the audit log', () => reader.close());
  return reader;
}

function logTrouble(trouble: Trouble, config: Config, log: Logger): void {
  if (trouble.isWritable) log.warn('the audit log can be written again', { entriesLost: trouble.entriesLost });
  else log.error('the audit log cannot be written', { reason: trouble.reason, checks: config.SVC_AUDIT_ON_FAILURE });
}

const DAY_MS = 24 * 3_600_000;
const MIB = 1024 * 1024;
const MAX_SEGMENT_MIB = 64;
/** In each thread, half-sent HTTP requests, half-sent gRPC messages and unread gRPC answers may each take this much. */
const MAX_HALF_SENT_MIB = 128;
/** Two of the largest batches. */
const LEAST_HALF_SENT_MIB = 8;
/** The part of all memory that each of the three may take. */
const HALF_SENT_PART = 1 / 8;

/** While some logins hash, this many others read or write their rows, so that no hash waits for the database. */
const AROUND_A_HASH = 2;

export const loginBounds = (config: Config): Bounds => ({
  atOnce: passwordThreads(config.SVC_CRYPTO_THREADS, config.UV_THREADPOOL_SIZE) + AROUND_A_HASH,
  waiting: config.SVC_CRYPTO_QUEUE,
  waitMs: 10_000,
  what: 'sign-in',
});

export const auditFolderOf = (config: Config): string => join(config.SVC_DATA_DIR, 'audit');

/** `telemetryChannel`: where checks leave a record; undefined: nowhere. */
function ioDataOf(config: Config, home: string | undefined, telemetryChannel: string | undefined): IoData {
  const logins = loginBounds(config);
  return {
    home,
    telemetryChannel,
    httpHost: config.SVC_HTTP_ADDR.host,
    httpEngine: config.SVC_HTTP_ENGINE,
    grpcHost: config.SVC_GRPC_ADDR.host,
    maxPending: config.SVC_MAX_PENDING,
    failuresPerMinute: config.SVC_RATE_LIMIT_API,
    webFolder: WEB_FOLDER,
    corsOrigins: config.SVC_CORS_ORIGINS,
    trustedProxies: config.SVC_TRUSTED_PROXIES,
    bodyTimeoutMs: config.SVC_BODY_TIMEOUT_SECS * 1000,
    hasAccountStore: config.SVC_DATABASE_URL !== undefined,
    maxLogins: logins.atOnce + logins.waiting,
    own: ownNames(config),
    publicUrl: config.SVC_PUBLIC_URL,
    scheme: schemeOf(config),
    maxStreams: config.SVC_MAX_STREAMS,
    opsTtlSecs: config.SVC_OPS_TTL_SECS,
    maxGrpcConnections: config.SVC_MAX_GRPC_CONNECTIONS,
    maxGrpcStreams: config.SVC_MAX_GRPC_STREAMS,
    maxHalfSentBytes: maxHalfSentBytes(Math.max(1, config.SVC_IO_THREADS), usableMemoryMib()),
  };
}

/** On loopback, what the gateway is called by is known: see `OwnHosts`. */
function ownNames({ SVC_HTTP_ADDR: { host }, SVC_PUBLIC_URL: url, SVC_CORS_ORIGINS: cors }: Config): IoData['own'] {
  const origins = [...(url === undefined ? [] : [new URL(url).origin]), ...cors];
  return { origins, hosts: isLoopback(host) ? origins.map((origin) => new URL(origin).hostname) : undefined };
}

/** Scales with memory: sending half a request needs no credential, and must not exhaust a small container. */
export const maxHalfSentBytes = (ioThreads: number, memoryMib: number): number =>
  MIB *
  Math.min(MAX_HALF_SENT_MIB, Math.max(LEAST_HALF_SENT_MIB, Math.floor((memoryMib * HALF_SENT_PART) / ioThreads)));

const auditDataOf = (config: Config): RecordingOptions => ({
  directory: auditFolderOf(config),
  fsync: config.SVC_AUDIT_FSYNC,
  checkpointKeyPath: join(config.SVC_DATA_DIR, 'keys', 'audit-checkpoint.pem'),
  checkpointEveryMs: config.SVC_AUDIT_CHECKPOINT_MINUTES * 60_000,
  retention: {
    maxAgeMs: config.SVC_AUDIT_RETENTION_DAYS === 0 ? undefined : config.SVC_AUDIT_RETENTION_DAYS * DAY_MS,
    maxBytes: config.SVC_AUDIT_RETENTION_MIB === 0 ? undefined : config.SVC_AUDIT_RETENTION_MIB * MIB,
  },
  ...(config.SVC_AUDIT_RETENTION_MIB > 0 && { segmentBytes: segmentBytesOf(config.SVC_AUDIT_RETENTION_MIB * MIB) }),
});

/** The newest segment stays whole, so it must be a small part of a log with a limit. */
const segmentBytesOf = (maxBytes: number): number => Math.min(MAX_SEGMENT_MIB * MIB, Math.floor(maxBytes / 16));
