/**
 * Walks the chain of a log, live or copied, and names the first entry that is not as it was written.
 *
 * Anybody can do the same without this program; in Python, for a log that retention has not cut:
 *
 *   import glob, hashlib, json, sys
 *   prev, expected = '0' * 64, 1
 *   for path in sorted(glob.glob(sys.argv[1] + '/[0-9]*.ndjson')):
 *       if path.endswith('checkpoints.ndjson'): continue
 *       for line in open(path, 'rb'):
 *           entry, sealed = json.loads(line), line.rstrip(b'\n').rpartition(b',"hash":')[0]
 *           assert entry['hash'] == hashlib.sha256(sealed).hexdigest(), f"entry {expected} was changed"
 *           assert (entry['id'], entry['prev_hash']) == (expected, prev), f"entry {expected} is not where it belongs"
 *           prev, expected = entry['hash'], expected + 1
 *   print(expected - 1, 'entries, head', prev)
 */
import type { KeyObject } from 'node:crypto';
import { closeSync, openSync, readSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { GENESIS_HASH } from '../core/audit/audit-line.ts';
import type { WitnessStatement } from '../core/audit/witness.ts';
import { assert } from '../core/base/result.ts';
import { codeOf } from '../core/base/text.ts';
import { withOpenFile } from '../system/files.ts';
import {
  ANCHOR_FILE,
  type Anchor,
  CHECKPOINTS_FILE,
  type Checkpoint,
  isGenuineAnchor,
  isGenuineCheckpoint,
  readAnchor,
  readCheckpoints,
} from './checkpoint.ts';
import { checkKept } from './kept-check.ts';
import { type ChainHead, frameOf, hashOfLine, type LineFrame } from './line.ts';
import { listSegments, type Segment } from './segments.ts';

export type AuditProblem =
  /** The entry does not match its hash, or its successor recorded another hash for it. */
  | 'changed'
  | 'removed'
  | 'reordered'
  /** An entry is repeated where this one belongs. */
  | 'inserted'
  /** A checkpoint, a witness or another gateway covers this entry, and the log ends before it, or begins after it. */
  | 'cut'
  /** The chain holds, but a checkpoint, a witness or another gateway has another hash here: it was made anew. */
  | 'rewritten'
  /** The file of checkpoints, or the anchor of retention, is not what the holder of the key signed. */
  | 'forged';

export type BrokenEntry = {
  readonly id: number;
  readonly segment: string;
  /** Counted from 1, within the segment. */
  readonly line: number;
  readonly problem: AuditProblem;
  readonly detail: string;
};

export type VerifyReport =
  | {
      readonly ok: true;
      readonly entries: number;
      readonly firstId: number;
      readonly head: ChainHead;
      /**
       * How many checkpoints vouch for the entries, up to which one, and when the last of them was signed, in RFC 3339.
       */
      readonly checkpoints: number;
      readonly checkpointedUpTo: number;
      readonly checkpointedAt: string | undefined;
      /** The last entry that a witness vouches for, and when it was stated, in RFC 3339; 0: none. */
      readonly witnessedUpTo: number;
      readonly witnessedAt: string | undefined;
      /**
       * The part confirmed by checkpoints of other gateways; undefined: they were not asked, or do not mention the log.
       */
      readonly peers?: { readonly upTo: number; readonly at: string; readonly gateways: readonly string[] } | undefined;
      /** When the last entry was made, in RFC 3339; undefined in an empty log. */
      readonly headAt: string | undefined;
      /** Bytes of an incomplete line at the very end: one that is being written, or was torn by a crash. */
      readonly tornBytes: number;
      /** Entries from before `firstId` that retention has kept, outside the chain. */
      readonly kept: number;
    }
  | { readonly ok: false; readonly entries: number; readonly firstBroken: BrokenEntry };

export type VerifyOptions = {
  /** The public key of checkpoints and anchor; without it their signatures are not checked, only what they say. */
  readonly checkpointKey?: KeyObject | undefined;
  /** Statements kept by witnesses outside the log. They are trusted without a check. */
  readonly witnessed?: readonly WitnessStatement[] | undefined;
  /** Statements about this log in checkpoints of other gateways of the cluster. The caller checks their signatures. */
  readonly seenByPeers?: readonly PeerSight[] | undefined;
  /** Called about once per megabyte. */
  readonly onProgress?: ((entries: number) => void) | undefined;
};

/** The checkpoint of gateway `by`, from `timestamp`, says that the entry was the last one, with this hash. */
export type PeerSight = {
  readonly id: number;
  readonly hash: string;
  readonly timestamp: string;
  readonly by: string;
};

const READ_BYTES = 1024 * 1024;
/** Far more than an entry can have. Keeps memory constant for a file that is not a log. */
const MAX_LINE_BYTES = 16 * READ_BYTES;
const LINE_FEED = 10;

type Chain = {
  readonly nextId: number;
  readonly prevHash: string;
  readonly entries: number;
  readonly last: Place;
  /** The time of the last entry. */
  readonly atText: string | undefined;
};
/** A statement about an entry. */
type Sight = {
  readonly by: 'checkpoint' | 'witness' | 'peer';
  /** As it is called in what is reported. */
  readonly who: string;
  readonly gateway?: string | undefined;
  readonly hash: string;
  readonly timestamp: string;
  /** Undefined for that of a peer. */
  readonly statement?: Checkpoint;
};
type Sights = ReadonlyMap<number, readonly Sight[]>;
type Place = { readonly segment: string; readonly line: number };
/** A segment, with the chain as it is before it. Only the newest may end in a torn line. */
type Stage = {
  readonly segment: Segment;
  readonly start: Chain;
  readonly isNewest: boolean;
  readonly seen: Sights;
  readonly key: KeyObject | undefined;
};
type Walked =
  | { readonly ok: true; readonly chain: Chain; readonly tornBytes: number }
  | { readonly ok: false; readonly chain: Chain; readonly broken: BrokenEntry };

/** Reads the log once, in pieces. Throws only errors of the file system. */
export async function verifyAuditLog(directory: string, options: VerifyOptions = {}): Promise<VerifyReport> {
  // Read before the segments: what a checkpoint covers is in the log that is read after it.
  const statements = readStatements(directory, options);
  const { checkpointKey: key } = options;
  if (!statements.ok) return statements.report;
  const { anchor, seen } = statements;
  const unseen = beginningUnseen(anchor, options.witnessed ?? []);
  if (unseen !== undefined) return { ok: false, entries: 0, firstBroken: unseen };
  const firstId = anchor?.first_id ?? 1;
  const hasMoved = (): boolean => JSON.stringify(readAnchor(directory)) !== JSON.stringify(anchor);
  // Leftovers before the anchor are deleted by the next run of retention.
  const segments = listSegments(directory).filter((segment) => segment.firstId >= firstId);
  let chain: Chain = {
    nextId: firstId,
    prevHash: anchor?.prev_hash ?? GENESIS_HASH,
    entries: 0,
    last: { segment: '', line: 0 },
    atText: undefined,
  };
  let tornBytes = 0;
  for (const segment of segments) {
    const stage: Stage = { segment, start: chain, isNewest: segment === segments.at(-1), seen, key };
    let walked: Walked;
    try {
      walked = await walkSegment(stage, options);
      // In a live log a failed append may have been read half before it was taken back; a real break is still there.
      if (!walked.ok && stage.isNewest) walked = await walkSegment(stage, options);
    } catch (error) {
      if (codeOf(error) === 'ENOENT' && hasMoved()) return verifyAuditLog(directory, options); // Retention was at work.
      throw error;
    }
    // Entries that retention deleted after its anchor was read look removed.
    if (!walked.ok && hasMoved()) return verifyAuditLog(directory, options);
    if (!walked.ok) return { ok: false, entries: walked.chain.entries, firstBroken: walked.broken };
    ({ chain, tornBytes } = walked);
  }
  const kept = await checkKept(directory, anchor);
  if (typeof kept !== 'number' && hasMoved()) return verifyAuditLog(directory, options);
  if (typeof kept !== 'number') return { ok: false, entries: chain.entries, firstBroken: kept };
  return reportOf(chain, { firstId, seen, tornBytes, key, kept });
}

type Statements =
  | {
      readonly ok: true;
      readonly anchor: Anchor | undefined;
      /** Checkpoints of entries still in the log, by id. */
      readonly seen: Sights;
    }
  | { readonly ok: false; readonly report: VerifyReport };

/** The anchor, the checkpoints and the witnesses. Without a key, signatures are not checked. */
function readStatements(
  directory: string,
  { checkpointKey: key, witnessed = [], seenByPeers = [] }: VerifyOptions,
): Statements {
  const forged = (file: string, line: number, detail: string): Statements => ({
    ok: false,
    report: { ok: false, entries: 0, firstBroken: { id: 1, segment: file, line, problem: 'forged', detail } },
  });
  const anchor = readAnchor(directory);
  if (anchor === 'damaged') return forged(ANCHOR_FILE, 1, 'the record of what retention deleted is unreadable');
  if (anchor !== undefined && key !== undefined && !isGenuineAnchor(anchor, key))
    return forged(ANCHOR_FILE, 1, 'the signature does not match');
  const firstId = anchor?.first_id ?? 1;
  const seen = new Map<number, Sight[]>();
  const add = (id: number, sight: Sight): void => {
    if (id < firstId) return;
    const sights = seen.get(id);
    if (sights === undefined) seen.set(id, [sight]);
    else sights.push(sight);
  };
  for (const { line, checkpoint } of readCheckpoints(directory)) {
    if (checkpoint === undefined) return forged(CHECKPOINTS_FILE, line, 'the line is not a checkpoint');
    if (key !== undefined && !isGenuineCheckpoint(checkpoint, key))
      return forged(CHECKPOINTS_FILE, line, 'the signature does not match');
    add(checkpoint.id, sightOf('checkpoint', checkpoint));
  }
  for (const statement of witnessed) add(statement.id, sightOf('witness', statement));
  for (const { id, by: gateway, ...sight } of seenByPeers)
    add(id, { ...sight, by: 'peer', gateway, who: `checkpoint of gateway ${gateway}` });
  return { ok: true, anchor, seen };
}

const sightOf = (by: 'checkpoint' | 'witness', statement: Checkpoint): Sight => ({
  ...{ by, who: by, hash: statement.hash, timestamp: statement.timestamp, statement },
});

/** Retention may have deleted more than the witnesses know of, but then the gateway would have notified them. */
function beginningUnseen(anchor: Anchor | undefined, witnessed: readonly WitnessStatement[]): BrokenEntry | undefined {
  const begins = witnessed.flatMap(({ first_id }) => first_id ?? []);
  const lastBegin = begins.reduce((last, begin) => Math.max(last, begin), 0);
  if (begins.length === 0 || (anchor?.first_id ?? 1) <= lastBegin) return undefined;
  return {
    id: lastBegin,
    segment: ANCHOR_FILE,
    line: 1,
    problem: 'cut',
    detail: `the log begins at ${anchor?.first_id}, but the witness has seen it begin at ${lastBegin} at the latest`,
  };
}

/** The chain holds to its end; a checkpoint or a witness may know of a later one. */
function reportOf(
  chain: Chain,
  {
    firstId,
    seen,
    tornBytes,
    key,
    kept,
  }: {
    readonly firstId: number;
    readonly seen: Sights;
    readonly tornBytes: number;
    readonly key: KeyObject | undefined;
    readonly kept: number;
  },
): VerifyReport {
  const head: ChainHead = { id: chain.nextId - 1, hash: chain.prevHash };
  const lastOf = (by: Sight['by']): { readonly id: number; readonly sight: Sight | undefined } => {
    let last: { id: number; sight: Sight | undefined } = { id: 0, sight: undefined };
    for (const [id, sights] of seen) {
      const sight = id < last.id ? undefined : sights.findLast((each) => each.by === by);
      if (sight !== undefined) last = { id, sight };
    }
    return last;
  };
  const [checkpoint, witness, peer] = [lastOf('checkpoint'), lastOf('witness'), lastOf('peer')];
  if (Math.max(checkpoint.id, witness.id, peer.id) <= head.id)
    return {
      ok: true,
      entries: chain.entries,
      firstId,
      head,
      checkpoints: [...seen.values()].filter((sights) => sights.some(({ by }) => by === 'checkpoint')).length,
      checkpointedUpTo: checkpoint.id,
      checkpointedAt: checkpoint.sight?.timestamp,
      witnessedUpTo: witness.id,
      witnessedAt: witness.sight?.timestamp,
      peers: peer.sight && { upTo: peer.id, at: peer.sight.timestamp, gateways: peersIn(seen) },
      headAt: chain.atText,
      tornBytes,
      kept,
    };
  const { id, sight } = [checkpoint, witness, peer].find((each) => each.id > head.id) ?? peer;
  assert(sight !== undefined, 'what is seen beyond the end was seen by somebody');
  const detail = `the ${sight.who} from ${sight.timestamp} covers entry ${id}, but the log ends at ${head.id}${doubtOf(sight, key)}`;
  return {
    ok: false,
    entries: chain.entries,
    firstBroken: { id: head.id + 1, segment: chain.last.segment, line: chain.last.line + 1, problem: 'cut', detail },
  };
}

const peersIn = (seen: Sights): readonly string[] => [
  ...new Set([...seen.values()].flatMap((sights) => sights.flatMap(({ gateway }) => gateway ?? []))),
];

/**
 * A witness is believed as it is: who can rewrite the log could also replace the key beside it. If both contradict the
 * log, the report says so, because the statement may be forged, or about another log.
 */
const doubtOf = ({ by, statement }: Sight, key: KeyObject | undefined): string =>
  by !== 'witness' || key === undefined || statement === undefined || isGenuineCheckpoint(statement, key)
    ? ''
    : '; this statement is not signed with the key: it is forged or about another log, or the key is not that of this log';

async function walkSegment(stage: Stage, options: VerifyOptions): Promise<Walked> {
  const fd = openSync(stage.segment.path, 'r');
  try {
    return await walkLines(fd, stage, options);
  } finally {
    closeSync(fd);
  }
}

async function walkLines(fd: number, stage: Stage, { onProgress }: VerifyOptions): Promise<Walked> {
  const { segment, start, isNewest } = stage;
  let chain = start;
  let line = 0;
  const broken = (flaw: Flaw): Walked => ({ ok: false, chain, broken: { segment: segment.name, line, ...flaw } });
  let rest: Buffer = Buffer.alloc(0);
  for (let position = 0; ; ) {
    const block = Buffer.allocUnsafe(READ_BYTES);
    const read = readSync(fd, block, 0, block.length, position);
    if (read === 0) break;
    position += read;
    const bytes = rest.length === 0 ? block.subarray(0, read) : Buffer.concat([rest, block.subarray(0, read)]);
    let from = 0;
    for (let feed = bytes.indexOf(LINE_FEED); feed !== -1; feed = bytes.indexOf(LINE_FEED, from)) {
      line += 1;
      const judged = judge(bytes.subarray(from, feed), chain, stage);
      if ('problem' in judged) return broken(judged);
      chain = {
        nextId: judged.id + 1,
        prevHash: judged.hash,
        entries: chain.entries + 1,
        last: { segment: segment.name, line },
        atText: timeIn(bytes.subarray(from, feed)),
      };
      from = feed + 1;
    }
    rest = bytes.subarray(from);
    if (rest.length > MAX_LINE_BYTES) {
      line += 1;
      return broken({ id: chain.nextId, problem: 'changed', detail: 'the line does not end' });
    }
    onProgress?.(chain.entries);
    await nextTurn();
  }
  line += 1;
  const isTorn = rest.length > 0 && isNewest && frameOf(rest.subarray(0, -1)) === undefined;
  if (rest.length > 0 && !isTorn)
    return broken({ id: chain.nextId, problem: 'changed', detail: 'the line does not end where it should' });
  return { ok: true, chain, tornBytes: rest.length };
}

type Flaw = { readonly id: number; readonly problem: AuditProblem; readonly detail: string } & Partial<Place>;

function judge(
  line: Buffer,
  { nextId, prevHash, entries, last }: Chain,
  { segment, seen, key }: Stage,
): LineFrame | Flaw {
  const frame = frameOf(line);
  if (frame === undefined) return { id: nextId, problem: 'changed', detail: 'the line is not an entry' };
  if (hashOfLine(line) !== frame.hash)
    return { id: nextId, problem: 'changed', detail: 'the entry does not match its hash' };
  if (frame.id > nextId) {
    return holdsEntry(segment, nextId)
      ? { id: nextId, problem: 'reordered', detail: `entry ${frame.id} comes before it` }
      : { id: nextId, problem: 'removed', detail: `entry ${frame.id} is in its place` };
  }
  if (frame.id < nextId)
    return { id: nextId, problem: 'inserted', detail: `entry ${frame.id} appears here a second time` };
  if (frame.prevHash !== prevHash) {
    const detail = `entry ${frame.id} has a different hash for its predecessor`;
    // Both entries match their own hashes. The one made later vouches for the earlier, so the earlier is the changed
    // one.
    return entries === 0
      ? { id: nextId, problem: 'changed', detail }
      : { id: nextId - 1, problem: 'changed', detail, ...last };
  }
  const other = seen.get(frame.id)?.find((sight) => sight.hash !== frame.hash);
  if (other === undefined) return frame;
  return {
    id: frame.id,
    problem: 'rewritten',
    detail: `the ${other.who} from ${other.timestamp} has a different hash; the chain was rebuilt from here or earlier${doubtOf(other, key)}`,
  };
}

/** When the entry was made: the second field of its line. */
const timeIn = (line: Buffer): string | undefined => /"timestamp":"([^"]*)"/.exec(line.toString('latin1', 0, 128))?.[1];

/** Whether a line of the segment begins as the entry `id` does. */
function holdsEntry({ path }: Segment, id: number): boolean {
  const needle = `\n{"id":${id},`;
  return withOpenFile(path, 'r', (fd) => {
    const block = Buffer.allocUnsafe(READ_BYTES);
    // The file's first line counts as if a line feed came before it.
    let text = '\n';
    for (let position = 0; ; ) {
      const read = readSync(fd, block, 0, block.length, position);
      if (read === 0) return false;
      position += read;
      text = text.slice(-needle.length) + block.toString('latin1', 0, read);
      if (text.includes(needle)) return true;
    }
  });
}
