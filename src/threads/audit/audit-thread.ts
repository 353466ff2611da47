import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import { explainNotice } from '../../audit-log/recovery.ts';
import { type AuditWriter, openAuditWriter } from '../../audit-log/writer.ts';
import { assertNever } from '../../core/base/result.ts';
import { decodeToAudit, encode, encodeRelease } from '../codec.ts';
import { type AuditToIo, type AuditToMain, type IoId, MAIN, type MainToAudit } from '../protocol.ts';
import { RELEASED, SHARE_FULL, WRITTEN } from './audit-link.ts';
import { AuditUpkeep, type UpkeepOptions } from './audit-upkeep.ts';

export type AuditThreadOptions = UpkeepOptions & {
  readonly fsync: 'always' | 'never';
  /** Counters that the main thread reads: WRITTEN and RELEASED of the audit link. */
  readonly counters: SharedArrayBuffer;
};

/** Connects an I/O thread that was started, so that its answers can be released to it. */
export type ConnectIo = { readonly io: IoId; readonly port: MessagePort };

type Append = Extract<MainToAudit, { type: 'append' }>;
type Incoming = Uint8Array | ConnectIo;

/** How often to retry a log that could not be written, and how much free space it needs. */
const RETRY_MS = 500;
const PROBE_BYTES = 256 * 1024;
/** How soon a moved or deleted log is noticed. */
const LOOK_EVERY_MS = 1_000;

/** The most that one write may hold: enough to be efficient, and little enough not to delay the first answer. */
const MAX_GROUP_ENTRIES = 4_096;

export function runAuditThread(main: MessagePort, options: AuditThreadOptions): void {
  const opened = openAuditWriter({ ...options, nowMs: Date.now });
  if (!opened.ok)
    throw new Error(
      `the audit log in ${options.directory} is in use by another gateway (${opened.fault.holder}); stop it, or choose another SVC_DATA_DIR`,
    );
  const { writer, notices } = opened.value;
  const thread = new AuditThread(main, writer, options);
  main.on('message', (message: Incoming) => thread.receive(message));
  thread.notify({ type: 'opened', headId: writer.head().id, notes: notices.map(explainNotice) });
}

/**
 * Writes what the main thread decided, then lets the answers go. Whatever waits when a write ends goes into the next
 * one together, so that many small batches cost one write and, with fsync, one trip to the disk. Behind a failed write
 * nothing is written, because it may build on what failed: whatever was sent before `resume` is dropped, and the main
 * thread answers it.
 */
class AuditThread {
  readonly #main: MessagePort;
  readonly #writer: AuditWriter;
  readonly #directory: string;
  readonly #counters: Int32Array;
  readonly #upkeep: AuditUpkeep;
  readonly #ios = new Map<IoId, MessagePort>();
  #waiting: Append[] = [];
  readonly #look: NodeJS.Timeout;
  #probe: NodeJS.Timeout | undefined;
  #isFailing = false;
  #isClosing = false;

  constructor(main: MessagePort, writer: AuditWriter, options: AuditThreadOptions) {
    this.#main = main;
    this.#writer = writer;
    this.#directory = options.directory;
    this.#counters = new Int32Array(options.counters);
    this.#upkeep = new AuditUpkeep(
      writer,
      options,
      (level, message) => this.notify({ type: 'note', level, message }),
      (statement) => this.notify({ type: 'statement', statement }),
    );
    this.#look = setInterval(() => this.#lookForLog(), LOOK_EVERY_MS);
  }

  notify(message: AuditToMain): void {
    this.#main.postMessage(encode(message));
  }

  /** Handles this message together with all that arrived after it. */
  receive(first: Incoming): void {
    this.#take(first);
    for (let next = receiveMessageOnPort(this.#main); next !== undefined; next = receiveMessageOnPort(this.#main))
      this.#take(next.message as Incoming);
    while (this.#waiting.length > 0) this.#writeGroup(takeGroup(this.#waiting));
    if (this.#isClosing) this.#close();
  }

  #take(message: Incoming): void {
    if (!(message instanceof Uint8Array)) {
      this.#ios.set(
        message.io,
        message.port.once('close', () => this.#ios.delete(message.io)),
      );
      return;
    }
    const decoded = decodeToAudit(message);
    switch (decoded.type) {
      case 'append':
        if (!this.#isFailing) this.#waiting.push(decoded);
        return;
      case 'resume':
        this.#isFailing = false;
        return;
      case 'close':
        this.#isClosing = true;
        return;
      default:
        return assertNever(decoded);
    }
  }

  #writeGroup(group: readonly Append[]): void {
    const lastBatch = group.at(-1)!.batch;
    const count = group.reduce((sum, batch) => sum + batch.count, 0);
    const written = this.#writer.append(group.map((batch) => batch.bodies).join('\n'), count);
    if (!written.ok) return this.#fail(written.fault.detail);
    // The main thread learns of it first, because whoever gets an answer may at once ask for something that depends on
    // it.
    Atomics.store(this.#counters, WRITTEN, lastBatch);
    const strangerBytes = group.reduce((sum, batch) => sum + batch.strangerBytes, 0);
    if (strangerBytes > 0) this.#noteStrangers(strangerBytes);
    if (group.some(({ isAwaited }) => isAwaited)) this.notify({ type: 'written' });
    this.#release(group, written.value.firstId);
    Atomics.store(this.#counters, RELEASED, lastBatch);
  }

  #noteStrangers(bytes: number): void {
    this.#upkeep.noteStrangers(bytes);
    this.#shareStrangers();
  }

  /** The main thread records no more of strangers while their share of the log is used up. */
  #shareStrangers(): void {
    Atomics.store(this.#counters, SHARE_FULL, this.#upkeep.strangers.isFull ? 1 : 0);
  }

  #fail(reason: string): void {
    this.#isFailing = true;
    this.#waiting = [];
    this.notify({ type: 'not-written', reason });
    this.#startProbing();
  }

  /** `firstId` is the id of the group's first entry. */
  #release(group: readonly Append[], firstId: number): void {
    let nextId = firstId;
    const here: number[] = [];
    for (const { batch, io, count, replies } of group) {
      if (io === MAIN) here.push(batch, nextId);
      else if (io !== undefined && replies !== undefined)
        releaseTo(this.#ios.get(io), { type: 'released', firstId: nextId, replies });
      nextId += count;
    }
    if (here.length > 0) this.notify({ type: 'released', batches: here });
  }

  /**
   * Notices that the log was moved or deleted though nothing is written: an idle gateway would say that it is ready,
   * and deny the next check.
   */
  #lookForLog(): void {
    this.#shareStrangers(); // retention may have made room
    this.#writer.look();
    const { displacement } = this.#writer;
    // Never between a failure and `resume`, which must answer only that failure.
    const isNotified = this.#isFailing || this.#probe !== undefined;
    if (displacement !== undefined && !isNotified) this.#fail(displacement);
  }

  /** Tells the main thread as soon as the log can be written again. */
  #startProbing(): void {
    this.#probe ??= setInterval(() => {
      if (!this.#writer.look() || !hasRoom(this.#directory)) return;
      clearInterval(this.#probe);
      this.#probe = undefined;
      this.notify({ type: 'writable' });
    }, RETRY_MS);
  }

  #close(): void {
    clearInterval(this.#look);
    clearInterval(this.#probe);
    this.#upkeep.stop();
    this.#writer.close();
    this.notify({ type: 'closed' });
    this.#main.close();
  }
}

function releaseTo(port: MessagePort | undefined, message: AuditToIo): void {
  const bytes = encodeRelease(message);
  port?.postMessage(bytes, [bytes.buffer]);
}

function takeGroup(waiting: Append[]): readonly Append[] {
  let entries = 0;
  let count = 0;
  while (count < waiting.length && entries < MAX_GROUP_ENTRIES) {
    entries += waiting[count]!.count;
    count += 1;
  }
  return waiting.splice(0, count);
}

/** Whether the log's own file system takes a file again. */
function hasRoom(directory: string): boolean {
  let folder: string | undefined;
  try {
    folder = mkdtempSync(join(directory, '.probe-'));
    writeFileSync(join(folder, 'probe'), Buffer.alloc(PROBE_BYTES));
    return true;
  } catch {
    return false; // still full, or read-only: the answer that was asked for
  } finally {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  }
}
