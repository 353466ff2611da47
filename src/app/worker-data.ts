/** The parts of the configuration that the other threads get: plain data. */
import { join } from 'node:path';
import type { Config } from '../config/config.ts';
import { schemeOf } from '../config/urls.ts';
import { isLoopback } from '../core/base/client-address.ts';
import type { Bounds } from '../fairness/bounded.ts';
import { usableMemoryMib } from '../system/machine.ts';
import { WEB_FOLDER } from '../system/package-files.ts';
import type { RecordingOptions } from '../threads/audit/audit-thread.ts';
import { passwordThreads } from '../threads/crypto/pool.ts';
import type { IoData } from '../threads/io/io-thread.ts';

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
export function ioDataOf(config: Config, home: string | undefined, telemetryChannel: string | undefined): IoData {
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

export const auditDataOf = (config: Config): RecordingOptions => ({
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
