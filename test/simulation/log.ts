/** The audit log as it stands on the disk, read and verified on the way, by other code than the gateway's. */
import { createHash } from 'node:crypto';
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import type { AuditEntry } from '../../src/core/audit/audit.ts';
import { violation } from './violation.ts';

const LINE = /^(\{"id":(\d+),.*"prev_hash":"([0-9a-f]{64})"),"hash":"([0-9a-f]{64})"\}$/;

export class LogOnDisk {
  readonly #directory: string;
  readonly #entries: AuditEntry[] = [];
  #hash = '0'.repeat(64);
  #segment = 1;
  #offset = 0;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** The last entry read. */
  get head(): number {
    return this.#entries.length;
  }

  get(id: number): AuditEntry | undefined {
    return this.#entries[id - 1];
  }

  /** From the last to the first. */
  find(isMeant: (entry: AuditEntry) => boolean): AuditEntry | undefined {
    return this.#entries.findLast(isMeant);
  }

  /** Reads on to this entry, and returns what is new. Later bytes may be the rest of a failed write. */
  readTo(id: number): readonly AuditEntry[] {
    const from = this.#entries.length;
    while (this.#entries.length < id) {
      if (this.#readSegment(id) > 0) continue;
      // The next entry begins a file.
      if (this.#segment === this.#entries.length + 1 && this.#offset === 0)
        violation('record', `entry ${this.#entries.length + 1} of ${id} is not in the log`);
      this.#segment = this.#entries.length + 1;
      this.#offset = 0;
    }
    return this.#entries.slice(from);
  }

  /** After a crash: what its recovery found must begin with what was read before. */
  reread(id: number): readonly AuditEntry[] {
    const known = this.#entries.length;
    if (id < known) violation('record', `a restart lost the entries from ${id + 1} to ${known}`);
    return this.readTo(id);
  }

  #readSegment(id: number): number {
    const text = this.#textFromHere();
    let read = 0;
    let at = 0;
    for (let end = text.indexOf(10); end !== -1 && this.#entries.length < id; end = text.indexOf(10, at)) {
      this.#take(text.subarray(at, end));
      at = end + 1;
      read += 1;
    }
    this.#offset += at;
    return read;
  }

  #textFromHere(): Buffer {
    let fd: number;
    try {
      fd = openSync(join(this.#directory, `${String(this.#segment).padStart(16, '0')}.ndjson`), 'r');
    } catch (error) {
      return violation('record', `entry ${this.#entries.length + 1} is in no file: ${error}`);
    }
    try {
      const bytes = Buffer.allocUnsafe(Math.max(0, fstatSync(fd).size - this.#offset));
      return bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, this.#offset));
    } finally {
      closeSync(fd);
    }
  }

  #take(line: Buffer): void {
    const text = line.toString();
    const [, sealed, id, previous, hash] = LINE.exec(text) ?? [];
    const expected = this.#entries.length + 1;
    if (sealed === undefined || Number(id) !== expected)
      violation('chain', `line ${expected} is no entry of that number: ${text.slice(0, 120)}`);
    if (previous !== this.#hash) violation('chain', `entry ${id} names another predecessor`);
    this.#hash = createHash('sha256').update(sealed!).digest('hex');
    if (hash !== this.#hash) violation('chain', `entry ${id} has another hash than its bytes`);
    this.#entries.push(JSON.parse(text) as AuditEntry);
  }
}
