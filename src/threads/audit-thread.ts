import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { receiveMessageOnPort, type MessagePort } from 'node:worker_threads';
import { explainNotice } from '../adapters/audit/recovery.ts';
import { openAuditWriter } from '../adapters/audit/writer.ts';
import { startUpkeep, type UpkeepOptions } from './audit-upkeep.ts';
import { FAILED, RELEASED, WRITTEN } from './audit-link.ts';
import { decodeToAudit, encode, encodeRelease } from './codec.ts';
import type { AuditToIo, AuditToMain, IoIndex, MainToAudit } from './protocol.ts';

export type AuditThreadOptions = UpkeepOptions & {
  readonly fsync: 'always' | 'never';
  /** Counters that the main thread reads: WRITTEN, FAILED and RELEASED of the audit link. */
  readonly counters: SharedArrayBuffer;
};

/** Connects an I/O thread that was started, so that its answers can be released to it. */
export type ConnectIo = { readonly io: IoIndex; readonly port: MessagePort };

type Append = Extract<MainToAudit, { type: 'append' }>;

/** How often a log that could not be written is tried again, and how much room it must find. */
const RETRY_MS = 500;
const PROBE_BYTES = 256 * 1024;

/** The most that one write may hold: enough to be efficient, and little enough not to delay the first answer. */
const MAX_GROUP_ENTRIES = 4_096;

/**
 * The audit thread: writes what the main thread decided, then lets the answers go. Whatever waits when a write ends goes
 * into the next one together, so that many small batches cost one write and, with fsync, one trip to the disk.
 */
export function runAuditThread(main: MessagePort, options: AuditThreadOptions): void {
  const opened = openAuditWriter({ ...options, nowMs: Date.now });
  if (!opened.ok) throw new Error(`the audit log in ${options.directory} is in use by ${opened.fault.holder}; stop that gateway first, or choose another SVC_DATA_DIR`);
  const { writer, notices } = opened.value;
  const counters = new Int32Array(options.counters);
  const ios = new Map<IoIndex, MessagePort>();
  const waiting: Append[] = [];
  let isClosing = false;
  let probe: NodeJS.Timeout | undefined;

  const tell = (message: AuditToMain): void => main.postMessage(encode(message));

  const take = (message: Uint8Array | ConnectIo): void => {
    if (!(message instanceof Uint8Array)) {
      ios.set(message.io, message.port.once('close', () => ios.delete(message.io)));
      return;
    }
    const decoded = decodeToAudit(message);
    if (decoded.type === 'append') waiting.push(decoded);
    else isClosing = true;
  };

  main.on('message', (first: Uint8Array | ConnectIo) => {
    take(first);
    for (let next = receiveMessageOnPort(main); next !== undefined; next = receiveMessageOnPort(main)) take(next.message as Uint8Array | ConnectIo);
    while (waiting.length > 0) writeGroup(takeGroup(waiting));
    if (!isClosing) return;
    clearInterval(probe);
    upkeep.stop();
    writer.close();
    tell({ type: 'closed' });
    main.close();
  });

  const writeGroup = (group: readonly Append[]): void => {
    const count = group.reduce((sum, batch) => sum + batch.count, 0);
    const written = writer.append(group.map((batch) => batch.bodies).join('\n'), count);
    // The main thread learns of it first, because whoever gets an answer may at once ask for something that depends on it.
    if (written.ok) Atomics.store(counters, WRITTEN, group.at(-1)!.batch);
    else {
      for (const { batch } of group) {
        Atomics.add(counters, FAILED, 1);
        tell({ type: 'not-written', batch, reason: written.fault.detail });
      }
      startProbing();
    }
    if (written.ok && group.some(({ isAwaited }) => isAwaited)) tell({ type: 'written' });
    let firstId = written.ok ? written.value.firstId : 0;
    for (const { io, count: entries, replies } of group) {
      if (io !== undefined && replies !== undefined) release(ios.get(io), { type: 'released', firstId, isRecorded: written.ok, replies });
      firstId += entries;
    }
    Atomics.store(counters, RELEASED, group.at(-1)!.batch);
  };

  const startProbing = (): void => {
    probe ??= setInterval(() => {
      if (!hasRoom(options.directory)) return;
      clearInterval(probe);
      probe = undefined;
      tell({ type: 'writable' });
    }, RETRY_MS);
  };

  const upkeep = startUpkeep(writer, options, (level, message) => tell({ type: 'note', level, message }));
  tell({ type: 'opened', headId: writer.head().id, notes: notices.map(explainNotice) });
}

function release(port: MessagePort | undefined, message: AuditToIo): void {
  const bytes = encodeRelease(message);
  port?.postMessage(bytes, [bytes.buffer]);
}

function takeGroup(waiting: Append[]): readonly Append[] {
  let entries = 0;
  let taken = 0;
  while (taken < waiting.length && entries < MAX_GROUP_ENTRIES) {
    entries += waiting[taken]!.count;
    taken += 1;
  }
  return waiting.splice(0, taken);
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
