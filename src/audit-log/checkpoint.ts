/**
 * Signed statements about the log, kept beside it: checkpoints of its head, which reveal a cut tail or a rewritten
 * chain, and the anchor, which says what retention has deleted. An attacker who can change the log but lacks the key
 * cannot make them.
 */

import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto';
import { existsSync, fdatasyncSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { PeerHead } from '../core/audit/witness.ts';
import { mappingIn } from '../core/base/mapping.ts';
import { ifThereSync, replaceFileSync, syncDirectory, textIfThereSync, withOpenFile } from '../system/files.ts';
import type { ChainHead } from './line.ts';

export const CHECKPOINTS_FILE = 'checkpoints.ndjson';
export const ANCHOR_FILE = 'anchor.json';

type Signed = { /** RFC 3339. */ readonly timestamp: string; readonly signature: string };
/** At `timestamp`, entry `id` was the last and had this hash. */
export type Checkpoint = Signed & {
  readonly id: number;
  readonly hash: string;
  /** Only where several gateways act as one: whose log it is, and what the ends of the others' logs were then. */
  readonly gateway?: string | undefined;
  readonly peers?: readonly PeerHead[] | undefined;
};
/** Entries from before an anchor that retention kept: the first `bytes` of a file in the folder `kept`. */
export type KeptFile = {
  readonly name: string;
  readonly entries: number;
  readonly bytes: number;
  /** The digest of those bytes. */
  readonly sha256: string;
};
/**
 * Entries before `first_id` were deleted by retention, but for those in `kept`; the last of them had the hash
 * `prev_hash`.
 */
export type Anchor = Signed & {
  readonly first_id: number;
  readonly prev_hash: string;
  readonly kept?: readonly KeptFile[] | undefined;
};

/** Validates each field; there are no others. */
type Shape<T> = { readonly [Field in keyof T]: (raw: unknown) => boolean };

const isText = (raw: unknown): boolean => typeof raw === 'string';
const isId = (raw: unknown): boolean => Number.isSafeInteger(raw) && Number(raw) > 0;
const isHash = (raw: unknown): boolean => typeof raw === 'string' && /^[0-9a-f]{64}$/.test(raw);
const isName = (raw: unknown): boolean => typeof raw === 'string' && /^[A-Za-z0-9._-]{1,64}$/.test(raw);
const isHead = (raw: unknown): boolean => {
  const { gateway, id, hash, ...others } = Object(raw) as Readonly<Record<string, unknown>>;
  return isName(gateway) && isId(id) && isHash(hash) && Object.keys(others).length === 0;
};
const CHECKPOINT: Shape<Checkpoint> = { id: isId, hash: isHash, timestamp: isText, signature: isText };
/** It covers the ends of the other gateways' logs: rewriting one log takes rewriting the checkpoints of all. */
const CHECKPOINT_2: Shape<Checkpoint> = {
  ...CHECKPOINT,
  gateway: isName,
  peers: (raw) => Array.isArray(raw) && raw.every(isHead),
};
const ANCHOR: Shape<Anchor> = { first_id: isId, prev_hash: isHash, timestamp: isText, signature: isText };
const isKeptFile = (raw: unknown): boolean => {
  const { name, entries, bytes, sha256, ...others } = Object(raw) as Readonly<Record<string, unknown>>;
  return (
    typeof name === 'string' &&
    /^\d{16}(-\d+)?\.ndjson$/.test(name) &&
    [entries, bytes].every(isId) &&
    isHash(sha256) &&
    Object.keys(others).length === 0
  );
};
/** It covers the kept entries: deleting them contradicts the anchor. */
const ANCHOR_2: Shape<Anchor> = { ...ANCHOR, kept: (raw) => Array.isArray(raw) && raw.every(isKeptFile) };

/** Whether it has the fields of a checkpoint, as they must look. */
export const isWholeCheckpoint = (raw: { readonly [F in keyof Checkpoint]?: unknown }): raw is Checkpoint =>
  hasShape(raw.peers === undefined ? CHECKPOINT : CHECKPOINT_2, raw);

/** The signed text: these lines, in this order, joined by line feeds. Anybody can check it with the public key. */
const checkpointText = ({ id, hash, timestamp, gateway, peers }: Omit<Checkpoint, 'signature'>): string =>
  peers === undefined
    ? ['svc-audit-checkpoint', id, hash, timestamp].join('\n')
    : ['svc-audit-checkpoint-2', gateway, id, hash, timestamp, ...peers.map(headText)].join('\n');
const headText = ({ gateway, id, hash }: PeerHead): string => `${gateway} ${id} ${hash}`;
const anchorText = ({ first_id, prev_hash, timestamp, kept }: Omit<Anchor, 'signature'>): string =>
  kept === undefined
    ? ['svc-audit-anchor', first_id, prev_hash, timestamp].join('\n')
    : ['svc-audit-anchor-2', first_id, prev_hash, timestamp, ...kept.map(keptText)].join('\n');
const keptText = ({ name, entries, bytes, sha256 }: KeptFile): string => `${name} ${entries} ${bytes} ${sha256}`;

const signed = (text: string, key: KeyObject): string => sign(null, Buffer.from(text), key).toString('base64url');
const isSigned = (text: string, signature: string, key: KeyObject): boolean =>
  verify(null, Buffer.from(text), key, Buffer.from(signature, 'base64url'));

export const isGenuineCheckpoint = (checkpoint: Checkpoint, publicKey: KeyObject): boolean =>
  isSigned(checkpointText(checkpoint), checkpoint.signature, publicKey);
export const isGenuineAnchor = (anchor: Anchor, publicKey: KeyObject): boolean =>
  isSigned(anchorText(anchor), anchor.signature, publicKey);

/**
 * The Ed25519 private key in `path` (PKCS#8 PEM). A missing one is created with mode 0600, atomically, so that a crash
 * leaves no partial key. Throws, with what to do, when the file holds no such key.
 */
export function loadCheckpointKey(path: string): KeyObject {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  if (!existsSync(path)) {
    replaceFileSync(
      path,
      generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    );
  }
  const pem = readFileSync(path);
  try {
    return createPrivateKey(pem);
  } catch {
    // With a new key, every checkpoint so far would look forged.
    throw new Error(
      `${path} is damaged; restore it from a backup, or remove it to sign with a new key, after which checkpoints signed with the old key can no longer be verified`,
    );
  }
}

/** The public key of a private or a public one in PEM. */
export const publicKeyOf = (pem: string | Buffer): KeyObject => createPublicKey(pem);

export type Checkpointer = {
  /**
   * Records the head, and what is known of the others' logs, unless all of it was recorded last or the log is empty:
   * then undefined. Throws what the file system says.
   */
  record(head: ChainHead, peers?: readonly PeerHead[]): Checkpoint | undefined;
};

/** Appends signed checkpoints to the file in `directory`, each of them on the disk before `record` returns. */
export function createCheckpointer(options: {
  readonly directory: string;
  readonly key: KeyObject;
  /** The name of this gateway, where several act as one. */
  readonly gateway?: string | undefined;
  readonly nowMs: () => number;
}): Checkpointer {
  const { directory, key, gateway, nowMs } = options;
  const path = join(directory, CHECKPOINTS_FILE);
  // Only the last one is parsed: there are a hundred thousand after two years.
  const last = checkpointLines(directory).at(-1);
  let lastId = last === undefined ? 0 : (parsedCheckpoint(last)?.id ?? 0);
  let lastPeers = '';
  // A crash or a full disk may have left half a line at the end.
  let endIsClean = false;
  return {
    record(head, others = []) {
      // A name that would not fit into the signed text is left out.
      const peers = gateway === undefined ? undefined : others.filter(isHead).toSorted(byName);
      const peersText = peers?.map(headText).join() ?? '';
      if (head.id === 0 || (head.id === lastId && peersText === lastPeers)) return undefined;
      const unsigned = {
        ...{ id: head.id, hash: head.hash, timestamp: new Date(nowMs()).toISOString() },
        ...(peers !== undefined && { gateway, peers }),
      };
      const isFirst = !endIsClean;
      if (isFirst) cutHalfLine(path);
      endIsClean = false;
      const checkpoint = { ...unsigned, signature: signed(checkpointText(unsigned), key) };
      appendLine(path, JSON.stringify(checkpoint));
      if (isFirst) syncDirectory(directory); // the file may be new
      endIsClean = true;
      lastId = head.id;
      lastPeers = peersText;
      return checkpoint;
    },
  };
}

const byName = (one: PeerHead, other: PeerHead): number => (one.gateway < other.gateway ? -1 : 1);

function cutHalfLine(path: string): void {
  const bytes = ifThereSync(() => readFileSync(path));
  if (bytes !== undefined) truncateSync(path, bytes.lastIndexOf('\n') + 1);
}

function appendLine(path: string, line: string): void {
  withOpenFile(path, 'a', (fd) => {
    writeFileSync(fd, `${line}\n`);
    fdatasyncSync(fd);
  });
}

/**
 * Oldest first; `checkpoint` is undefined for a line that is not one. A last line without its line feed is left out.
 */
export function readCheckpoints(
  directory: string,
): { readonly line: number; readonly checkpoint: Checkpoint | undefined }[] {
  return checkpointLines(directory).map((line, index) => ({ line: index + 1, checkpoint: parsedCheckpoint(line) }));
}

const checkpointLines = (directory: string): readonly string[] =>
  (textIfThereSync(join(directory, CHECKPOINTS_FILE)) ?? '').split('\n').slice(0, -1);

/** The one that covers the most entries; undefined where none can be read. */
export function latestCheckpoint(directory: string): Checkpoint | undefined {
  return readCheckpoints(directory).reduce<Checkpoint | undefined>(
    (latest, { checkpoint }) => ((checkpoint?.id ?? 0) > (latest?.id ?? 0) ? checkpoint : latest),
    undefined,
  );
}

/** Undefined when nothing was ever deleted; 'damaged' when the file is not an anchor. */
export function readAnchor(directory: string): Anchor | 'damaged' | undefined {
  const text = textIfThereSync(join(directory, ANCHOR_FILE));
  return text === undefined ? undefined : (parsed(ANCHOR, text) ?? parsed(ANCHOR_2, text) ?? 'damaged');
}

type NewAnchor = {
  readonly directory: string;
  readonly firstId: number;
  readonly prevHash: string;
  readonly kept?: readonly KeptFile[];
  readonly key: KeyObject;
  readonly nowMs: number;
};

/** Durable before it returns: what it vouches for is deleted next. */
export function writeAnchor({ directory, firstId, prevHash, kept = [], key, nowMs }: NewAnchor): void {
  const anchor = {
    ...{ first_id: firstId, prev_hash: prevHash, timestamp: new Date(nowMs).toISOString() },
    ...(kept.length > 0 && { kept }),
  };
  replaceFileSync(
    join(directory, ANCHOR_FILE),
    `${JSON.stringify({ ...anchor, signature: signed(anchorText(anchor), key) })}\n`,
  );
}

/** Drops checkpoints of entries that are gone; the newest stays in any case. */
export function pruneCheckpoints(directory: string, firstKeptId: number): void {
  const lines = checkpointLines(directory);
  const kept = lines.filter(
    (line, index) => index === lines.length - 1 || (parsedCheckpoint(line)?.id ?? Infinity) >= firstKeptId,
  );
  if (kept.length < lines.length)
    replaceFileSync(join(directory, CHECKPOINTS_FILE), kept.map((line) => `${line}\n`).join(''));
}

const parsedCheckpoint = (line: string): Checkpoint | undefined =>
  parsed(CHECKPOINT, line) ?? parsed(CHECKPOINT_2, line);

const hasShape = (shape: Readonly<Record<string, (raw: unknown) => boolean>>, raw: Readonly<Record<string, unknown>>) =>
  Object.entries(shape).every(([field, fits]) => fits(raw[field]));

/** Undefined for what the gateway has not written. */
function parsed<T extends object>(shape: Shape<T>, text: string): T | undefined {
  const raw = mappingIn(text);
  if (raw === undefined || !Object.keys(raw).every((field) => Object.hasOwn(shape, field))) return undefined;
  return hasShape(shape, raw) ? (raw as T) : undefined;
}
