import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import { explainNotice } from '../../audit-log/recovery.ts';
import { type AuditWriter, openAuditWriter } from '../../audit-log/writer.ts';
import { assert, assertNever } from '../../core/base/result.ts';
import { messageOf } from '../../core/base/text.ts';
import { decodeToAudit, encode } from '../codec.ts';
import type { AuditToMain, MainToAudit } from '../protocol.ts';
import { FAILURES, WRITTEN } from './audit-counters.ts';
import type { AuditOutlet } from './audit-link.ts';
import { AuditUpkeep, type UpkeepOptions } from './audit-upkeep.ts';

export type RecordingOptions = UpkeepOptions & {
  readonly fsync: 'always' | 'never';
  /** The name of this gateway, where several act as one: it is in every entry, and the others know the last one. */
  readonly gateway?: string | undefined;
};

/** `counters` are read by the main thread and the I/O threads: see `audit-counters.ts`. */
export type AuditThreadOptions = RecordingOptions & { readonly counters: SharedArrayBuffer };

/** The main thread hears what becomes of the log. */
type Notify = (message: Exclude<AuditToMain, { type: 'opened' }>) => void;

type Append = Extract<MainToAudit, { type: 'append' }>;

/** How often to retry a log that could not be written, and how much free space it needs. */
const RETRY_MS = 500;
const PROBE_BYTES = 256 * 1024;
/** How soon a moved or deleted log is noticed. */
const LOOK_EVERY_MS = 1_000;

/** The most that one write may hold: enough to be efficient, and little enough not to delay the first answer. */
const MAX_GROUP_ENTRIES = 4_096;

type Started = { readonly recording: AuditRecording; readonly headId: number; readonly notes: readonly string[] };

/** Throws what keeps the log from being opened. */
function startRecording(options: RecordingOptions, notify: Notify): Started {
  const opened = openAuditWriter({ ...options, nowMs: Date.now });
  if (!opened.ok)
    throw new Error(
      `the audit log in ${options.directory} is in use by another gateway (${opened.fault.holder}); stop it, or choose another SVC_DATA_DIR`,
    );
  const { writer, notices } = opened.value;
  try {
    const recording = new AuditRecording(writer, options, notify);
    return { recording, headId: writer.head().id, notes: notices.map(explainNotice) };
  } catch (error) {
    writer.close();
    throw error;
  }
}

export function runAuditThread(main: MessagePort, options: AuditThreadOptions): void {
  const notify = counting(options.counters, (message) => {
    main.postMessage(encode(message));
    if (message.type === 'closed') main.close();
  });
  const { recording, headId, notes } = startRecording(options, notify);
  main.on('message', (first: Uint8Array) => {
    recording.take(decodeToAudit(first));
    // Together with all that arrived after it.
    for (let next = receiveMessageOnPort(main); next !== undefined; next = receiveMessageOnPort(main))
      recording.take(decodeToAudit(next.message as Uint8Array));
    recording.write();
  });
  notify({ type: 'opened', headId, notes });
}

/** Counts what is written and what fails in shared memory, and sends what the main thread does not read there. */
export function counting(counters: SharedArrayBuffer, send: (message: AuditToMain) => void) {
  const counts = new Int32Array(counters);
  return (message: AuditToMain): void => {
    if (message.type === 'written') {
      Atomics.store(counts, WRITTEN, message.batch);
      Atomics.notify(counts, WRITTEN);
      if (!message.isAwaited) return;
    }
    if (message.type === 'not-written') Atomics.add(counts, FAILURES, 1);
    send(message);
  };
}

/** A log that is written in this thread. */
export type AuditHere = AuditOutlet & {
  readonly headId: number;
  readonly notes: readonly string[];
  /** Lets go of the log after a defect, so that it can be opened anew. */
  abandon(): void;
};

/**
 * Opens the log in the main thread, where nobody waits for the disk (`fsync` is `never`): there, waking another thread
 * costs more than the write. Entries are written, and the main thread knows, before `send` returns. `onDefect` is
 * called once with what should not have been thrown; whatever was sent and is not said to be written is not in the log.
 */
export function openAuditHere(
  options: RecordingOptions,
  onMessage: (message: Exclude<AuditToMain, { type: 'opened' }>) => void,
  onDefect: (error: unknown) => void,
): AuditHere {
  const messages: Exclude<AuditToMain, { type: 'opened' }>[] = [];
  let [isUsable, isWorking] = [true, false];
  const deliver = (): void => {
    for (let message = messages.shift(); message !== undefined; message = messages.shift()) onMessage(message);
  };
  const { recording, headId, notes } = startRecording(options, (message) => {
    messages.push(message);
    if (!isWorking) deliver(); // a timer's
  });
  const send = (message: MainToAudit): void => {
    if (!isUsable) return;
    isWorking = true;
    try {
      recording.take(message);
      recording.write();
    } catch (error) {
      isUsable = false;
      setImmediate(() => onDefect(error));
    }
    isWorking = false;
    // Later entries are not in the log, as with a thread that has ended.
    if (message.type === 'close') isUsable = false;
    // Only now: what its listeners throw is no defect of the log.
    deliver();
  };
  return {
    headId,
    notes,
    send,
    abandon: () => {
      isUsable = false;
      try {
        recording.abandon();
      } catch (error) {
        onMessage({ type: 'note', level: 'warn', message: `could not let go of the audit log: ${messageOf(error)}` });
      }
    },
  };
}

/**
 * Writes what the main thread decided, and says up to which batch. Whatever waits when a write ends goes into the next
 * one together, so that many small batches cost one write and, with fsync, one trip to the disk.
 * Behind a failed write nothing is written, because it may build on what failed: whatever was sent before `resume` is
 * dropped, and the main thread answers it.
 */
export class AuditRecording {
  readonly #writer: AuditWriter;
  readonly #directory: string;
  readonly #notify: Notify;
  readonly #upkeep: AuditUpkeep;
  /** The last head that was reported; undefined: nobody asks for it. */
  #headId: number | undefined;
  #waiting: Append[] = [];
  readonly #look: NodeJS.Timeout;
  #probe: NodeJS.Timeout | undefined;
  #isFailing = false;
  #isShareFull = false;
  #isClosing = false;

  constructor(writer: AuditWriter, options: RecordingOptions, notify: Notify) {
    this.#writer = writer;
    this.#directory = options.directory;
    this.#notify = notify;
    this.#headId = options.gateway === undefined ? undefined : 0;
    this.#upkeep = new AuditUpkeep(
      writer,
      options,
      (level, message) => notify({ type: 'note', level, message }),
      (statement) => notify({ type: 'statement', statement }),
    );
    this.#shareStrangers();
    this.#look = setInterval(() => this.#lookForLog(), LOOK_EVERY_MS);
  }

  take(message: MainToAudit): void {
    switch (message.type) {
      case 'append':
        if (!this.#isFailing) this.#waiting.push(message);
        return;
      case 'peers':
        this.#upkeep.peers = message.heads;
        return;
      case 'resume':
        this.#isFailing = false;
        return;
      case 'close':
        this.#isClosing = true;
        return;
      default:
        return assertNever(message);
    }
  }

  /** Writes what was taken. */
  write(): void {
    while (this.#waiting.length > 0) this.#writeGroup(takeGroup(this.#waiting));
    if (this.#isClosing) this.#close();
  }

  /** Lets go of the log as it is. */
  abandon(): void {
    clearInterval(this.#look);
    clearInterval(this.#probe);
    this.#upkeep.abandon();
    this.#writer.close();
  }

  #writeGroup(group: readonly Append[]): void {
    const firstId = this.#writer.head().id + 1;
    assert(group[0]!.firstId === firstId, 'the main thread has counted the entries of the log');
    const count = group.reduce((sum, batch) => sum + batch.count, 0);
    const written = this.#writer.append(group.map((batch) => batch.bodies).join('\n'), count);
    if (!written.ok) return this.#fail(written.fault.detail);
    const { batch } = group.at(-1)!;
    this.#notify({ type: 'written', batch, isAwaited: group.some(({ isAwaited }) => isAwaited) });
    const strangerBytes = group.reduce((sum, { strangerBytes: bytes }) => sum + bytes, 0);
    if (strangerBytes > 0) this.#noteStrangers(strangerBytes);
  }

  #noteStrangers(bytes: number): void {
    this.#upkeep.noteStrangers(bytes);
    this.#shareStrangers();
  }

  /** Tells the main thread when the share of unauthenticated callers is used up: it then only counts their checks. */
  #shareStrangers(): void {
    const { isFull } = this.#upkeep.strangers;
    if (isFull === this.#isShareFull) return;
    this.#isShareFull = isFull;
    this.#notify({ type: 'share', isFull });
  }

  #fail(reason: string): void {
    this.#isFailing = true;
    this.#waiting = [];
    this.#notify({ type: 'not-written', reason });
    this.#startProbing();
  }

  /**
   * Notices that the log was moved or deleted though nothing is written: an idle gateway would say that it is ready,
   * and deny the next check.
   */
  #lookForLog(): void {
    this.#reportHead();
    this.#shareStrangers(); // retention may have made room
    this.#writer.look();
    const { displacement } = this.#writer;
    // Never between a failure and `resume`, which must answer only that failure.
    const isNotified = this.#isFailing || this.#probe !== undefined;
    if (displacement !== undefined && !isNotified) this.#fail(displacement);
  }

  #reportHead(): void {
    const head = this.#writer.head();
    if (this.#headId === undefined || this.#headId === head.id) return;
    this.#headId = head.id;
    this.#notify({ type: 'head', head });
  }

  /** Tells the main thread as soon as the log can be written again. */
  #startProbing(): void {
    this.#probe ??= setInterval(() => {
      if (!this.#writer.look() || !hasRoom(this.#directory)) return;
      clearInterval(this.#probe);
      this.#probe = undefined;
      this.#notify({ type: 'writable' });
    }, RETRY_MS);
  }

  #close(): void {
    clearInterval(this.#look);
    clearInterval(this.#probe);
    this.#upkeep.stop();
    this.#writer.close();
    this.#notify({ type: 'closed' });
  }
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
