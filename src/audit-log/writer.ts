/** Appends to the audit log: gives ids, chains hashes, and writes a batch of entries at once (docs/spec.md, Audit). */

import { spawnSync } from 'node:child_process';
import { hash } from 'node:crypto';
import {
  closeSync,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { HASH_LENGTH, HASH_PREFIX, ID_PREFIX, PREV_HASH_LENGTH, PREV_HASH_PREFIX } from '../core/audit/audit-line.ts';
import { assert, fail, ok, type Result } from '../core/base/result.ts';
import { codeOf, messageOf, quote } from '../core/base/text.ts';
import { ifThere, ifThereSync, isOutOfDescriptors, syncDirectory, syncFile, withOpenFile } from '../system/files.ts';
import type { ChainHead } from './line.ts';
import { type RecoveryNotice, recoverLog } from './recovery.ts';
import { segmentAt } from './segments.ts';

// Keeps two processes from writing one audit log: interleaved chains could not be told from tampering.

export type Lock = { release(): void };
/** `holder` is the process id found in the lock, as text for a human; it may be of another pid namespace. */
export type LockFault = { readonly kind: 'locked'; readonly holder: string };

/**
 * An advisory lock of the kernel where the `flock` command exists: it holds across containers that share a volume and
 * ends with the process, however that ends. The lock belongs to the open file, so it outlives the command that took it.
 * Elsewhere the lock of the data directory is the only one.
 */
export function acquireLock(directory: string): Result<Lock, LockFault> {
  const path = join(directory, 'lock');
  const fd = openSync(path, 'a+', 0o600);
  const { status, error } = spawnSync('flock', ['-n', '-x', '3'], { stdio: ['ignore', 'ignore', 'ignore', fd] });
  if (error === undefined && status === 0) {
    nameHolder(fd);
    return ok({ release: () => closeSync(fd) });
  }
  closeSync(fd);
  if (error === undefined && status === 1) return fail({ kind: 'locked', holder: readFileSync(path, 'utf8').trim() });
  return ok({ release: () => undefined });
}

// The kernel holds the lock; the name in it only helps a human, and a full disk must not keep the gateway from
// starting.
function nameHolder(fd: number): void {
  try {
    ftruncateSync(fd, 0);
    writeSync(fd, `${process.pid}\n`);
  } catch (error) {
    if (codeOf(error) !== 'ENOSPC' && codeOf(error) !== 'EDQUOT') throw error;
  }
}

// Makes written data survive a loss of power. A file that retention has deleted is skipped.

/** Files are flushed one by one, on the thread pool of Node.js: only the caller waits for the disk. */
async function flushFiles(paths: readonly string[]): Promise<void> {
  for (const path of paths) await ifThere(syncFile(path));
}

/** For a shutdown: the thread waits for the disk. */
function flushFilesNow(paths: readonly string[]): void {
  for (const path of paths) ifThereSync(() => withOpenFile(path, 'r', fsyncSync));
}

export type AuditWriterOptions = {
  readonly directory: string;
  /** `always`: an entry survives the loss of power, not only that of the process. */
  readonly fsync: 'always' | 'never';
  readonly nowMs: () => number;
  /** Named in every line, where several gateways act as one. */
  readonly gateway?: string | undefined;
  /** A segment this large or this old is followed by a new one. */
  readonly segmentBytes?: number;
  readonly segmentAgeMs?: number;
};

/** `code` as the system names it: ENOSPC, EIO, EROFS, EFBIG … Nothing of the batch is in the log. */
export type AuditWriteFault = { readonly kind: 'audit-write-failed'; readonly code: string; readonly detail: string };

export type OpenedWriter = { readonly writer: AuditWriter; readonly notices: readonly RecoveryNotice[] };

const DEFAULT_SEGMENT_BYTES = 64 * 1024 * 1024;
/** Places within a segment are 32-bit numbers in its index. */
const MAX_SEGMENT_BYTES = 1024 * 1024 * 1024;
const DEFAULT_SEGMENT_AGE_MS = 24 * 3_600_000;

/**
 * Opens or creates the log in `directory` (mode 0700), repairs its tail and takes its lock.
 * Throws only what cannot be repaired: a directory that cannot be read or written.
 */
export function openAuditWriter(options: AuditWriterOptions): Result<OpenedWriter, LockFault> {
  mkdirSync(options.directory, { recursive: true, mode: 0o700 });
  const lock = acquireLock(options.directory);
  if (!lock.ok) return lock;
  try {
    const { head, active, notices } = recoverLog(options.directory);
    // Written by a process that may have been killed before it flushed: what follows must not outlive it.
    if (active !== undefined && options.fsync === 'always') flushFilesNow([active.segment.path, options.directory]);
    const segment: OpenSegment | undefined =
      active === undefined
        ? undefined
        : {
            path: active.segment.path,
            fd: openSync(active.segment.path, 'r+'),
            sizeBytes: active.sizeBytes,
            startedMs: active.startedMs,
          };
    return ok({ writer: new AuditWriter(options, lock.value, head, segment), notices });
  } catch (error) {
    lock.value.release();
    throw error;
  }
}

type OpenSegment = { readonly path: string; readonly fd: number; sizeBytes: number; readonly startedMs: number };

const UTF8_BYTES_PER_UNIT = 3;
const MAX_ID_DIGITS = 16;
const ENVELOPE_BYTES = ID_PREFIX.length + MAX_ID_DIGITS + PREV_HASH_LENGTH + HASH_LENGTH + 1;
const KEPT_BUFFER_BYTES = 4 * 1024 * 1024;

export class AuditWriter {
  readonly #options: AuditWriterOptions;
  readonly #lock: Lock;
  readonly #segmentBytes: number;
  readonly #segmentAgeMs: number;
  readonly #gatewayField: string;
  #head: ChainHead;
  #segment: OpenSegment | undefined;
  /** A failed write may have left bytes behind the end, and the attempt to cut them off may have failed too. */
  #endIsClean = true;
  /** As `look` found it. */
  #isInPlace = true;
  /** Files written since the last flush, where the disk is not waited for. */
  readonly #unflushed = new Set<string>();
  #buffer = Buffer.allocUnsafeSlow(256 * 1024);

  /** Use `openAuditWriter`. */
  constructor(options: AuditWriterOptions, lock: Lock, head: ChainHead, segment: OpenSegment | undefined) {
    this.#options = options;
    this.#lock = lock;
    this.#head = head;
    this.#segment = segment;
    if (segment !== undefined) this.#unflushed.add(segment.path);
    this.#segmentBytes = Math.min(options.segmentBytes ?? DEFAULT_SEGMENT_BYTES, MAX_SEGMENT_BYTES);
    this.#segmentAgeMs = options.segmentAgeMs ?? DEFAULT_SEGMENT_AGE_MS;
    this.#gatewayField = options.gateway === undefined ? '' : `,"gateway":${quote(options.gateway)}`;
  }

  /** The last entry written; id 0 before the first. */
  head(): ChainHead {
    return this.#head;
  }

  /** The segment of the last entry; undefined before the first. A new one follows when it is full or old. */
  get segmentPath(): string | undefined {
    return this.#segment?.path;
  }

  /**
   * Whether the current segment is where it was begun. A segment that somebody moved or deleted would go on taking
   * entries that nobody ever finds: until it is back, appends fail. Call it now and then, because an append does not
   * look by itself.
   */
  look(): boolean {
    this.#isInPlace = this.#segment === undefined || isSameFile(this.#segment);
    return this.#isInPlace;
  }

  /** Why nothing can be appended, as `look` found it; undefined where the segment is in its place. */
  get displacement(): string | undefined {
    return this.#isInPlace
      ? undefined
      : `${this.#segment?.path} was moved or deleted; put it back, or restart the gateway to continue after the remaining entries`;
  }

  /**
   * Appends `count` bodies, joined by line feeds (core/audit-line.ts encodes them), as one write.
   * A fault means that none of them is in the log and that a later append may succeed.
   */
  append(bodies: string, count: number): Result<{ readonly firstId: number }, AuditWriteFault> {
    assert(count > 0, 'a batch holds at least one entry');
    const { displacement } = this;
    if (displacement !== undefined) return fail({ kind: 'audit-write-failed', code: 'ENOENT', detail: displacement });
    const sealed = this.#seal(bodies, count);
    try {
      this.#write(sealed.bytes);
    } catch (error) {
      const detail = messageOf(error);
      return fail({ kind: 'audit-write-failed', code: codeOf(error) ?? 'UNKNOWN', detail });
    }
    const firstId = this.#head.id + 1;
    this.#head = { id: this.#head.id + count, hash: sealed.hash };
    return ok({ firstId });
  }

  /**
   * Resolves with the head as it was at the call once it, and all before it, would survive the loss of power. Appends
   * go on meanwhile. Rejects with what the file system says.
   */
  async flush(): Promise<ChainHead> {
    const head = this.#head;
    const paths = this.#toFlush();
    const sealed = paths.filter((path) => path !== this.#segment?.path);
    await flushFiles(paths);
    for (const path of sealed) this.#unflushed.delete(path);
    return head;
  }

  /** As `flush`, and appends wait. */
  flushNow(): ChainHead {
    flushFilesNow(this.#toFlush());
    return this.#head;
  }

  close(): void {
    if (this.#segment !== undefined) {
      if (this.#endIsClean && this.#options.fsync === 'always') fdatasyncSync(this.#segment.fd);
      closeSync(this.#segment.fd);
      this.#segment = undefined;
    }
    this.#lock.release();
  }

  /** The folder last: it holds the names of new files. */
  #toFlush(): readonly string[] {
    const { directory, fsync } = this.#options;
    return fsync === 'always' || this.#unflushed.size === 0 ? [] : [...this.#unflushed, directory];
  }

  /** The lines of a batch, in the reused buffer, and the hash of the last. */
  #seal(bodies: string, count: number): { readonly bytes: Buffer; readonly hash: string } {
    const gateway = this.#gatewayField;
    const envelopeBytes = ENVELOPE_BYTES + gateway.length * UTF8_BYTES_PER_UNIT;
    const buffer = this.#bufferOf(bodies.length * UTF8_BYTES_PER_UNIT + count * envelopeBytes);
    let { id, hash: last } = this.#head;
    let end = 0;
    let from = 0;
    for (let nth = 1; nth <= count; nth += 1) {
      const feed = bodies.indexOf('\n', from);
      assert((feed === -1) === (nth === count), 'a batch holds as many bodies as it says');
      const body = feed === -1 ? bodies.slice(from) : bodies.slice(from, feed);
      id += 1;
      const start = end;
      end += buffer.write(`${ID_PREFIX}${id}${body}${gateway}${PREV_HASH_PREFIX}${last}"`, end);
      last = hash('sha256', buffer.subarray(start, end), 'hex');
      end += buffer.write(`${HASH_PREFIX}${last}"}\n`, end, 'latin1');
      from = feed + 1;
    }
    return { bytes: buffer.subarray(0, end), hash: last };
  }

  #bufferOf(bytes: number): Buffer {
    if (bytes > KEPT_BUFFER_BYTES) return Buffer.allocUnsafe(bytes);
    if (bytes > this.#buffer.length) this.#buffer = Buffer.allocUnsafeSlow(Math.min(bytes * 2, KEPT_BUFFER_BYTES));
    return this.#buffer;
  }

  #write(bytes: Buffer): void {
    const segment = this.#writableSegment();
    try {
      for (let written = 0; written < bytes.length; ) {
        written += writeSync(segment.fd, bytes, written, bytes.length - written, segment.sizeBytes + written);
      }
      if (this.#options.fsync === 'always') fdatasyncSync(segment.fd);
    } catch (error) {
      this.#endIsClean = false;
      this.#cutBack(segment);
      throw error;
    }
    segment.sizeBytes += bytes.length;
  }

  #writableSegment(): OpenSegment {
    const current = this.#segment;
    if (current !== undefined && !this.#endIsClean) {
      ftruncateSync(current.fd, current.sizeBytes);
      this.#endIsClean = true;
    }
    const nowMs = this.#options.nowMs();
    if (current !== undefined && !this.#isDone(current, nowMs)) return current;
    const file = this.#createFile(current);
    if (file === undefined) return current!;
    const next: OpenSegment = { ...file, sizeBytes: 0, startedMs: nowMs };
    this.#segment = next;
    this.#unflushed.add(next.path);
    if (current !== undefined) closeSync(current.fd);
    return next;
  }

  /**
   * Undefined: the current one has to go on. Anybody can open connections until no file can be opened, which must not
   * deny what all others ask.
   */
  #createFile(current: OpenSegment | undefined): Pick<OpenSegment, 'path' | 'fd'> | undefined {
    const { directory, fsync } = this.#options;
    const { path } = segmentAt(directory, this.#head.id + 1);
    let fd: number;
    try {
      fd = openSync(path, 'wx', 0o600);
    } catch (error) {
      if (isOutOfDescriptors(error) && current !== undefined && current.sizeBytes < MAX_SEGMENT_BYTES) return undefined;
      throw error;
    }
    try {
      if (fsync === 'always') syncDirectory(directory);
    } catch (error) {
      closeSync(fd);
      unlinkSync(path);
      throw error;
    }
    return { path, fd };
  }

  // An empty segment is never done: its successor would have the same name. A segment that begins in the future was
  // begun by a wrong clock, and would otherwise go on until that time has come.
  #isDone({ sizeBytes, startedMs }: OpenSegment, nowMs: number): boolean {
    return sizeBytes > 0 && (sizeBytes >= this.#segmentBytes || Math.abs(nowMs - startedMs) >= this.#segmentAgeMs);
  }

  #cutBack(segment: OpenSegment): void {
    try {
      ftruncateSync(segment.fd, segment.sizeBytes);
      this.#endIsClean = true;
    } catch {
      // The append already fails with the first cause; the next one begins by cutting again.
    }
  }
}

/** Anything but its absence is left to the next write to find out. */
function isSameFile({ path, fd }: OpenSegment): boolean {
  try {
    const [there, own] = [statSync(path), fstatSync(fd)];
    return there.ino === own.ino && there.dev === own.dev;
  } catch (error) {
    return codeOf(error) !== 'ENOENT' && codeOf(error) !== 'ENOTDIR';
  }
}
