/** Statements kept by witnesses: that the log had this entry at its end, and where it began (docs/audit-log.md). */

import { existsSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import type { AuditEvent } from '../../core/audit/audit.ts';
import type { WitnessStatement } from '../../core/audit/witness.ts';
import { mappingIn } from '../../core/base/mapping.ts';
import { isWholeCheckpoint } from '../checkpoint.ts';
import { listSegments } from '../segments.ts';

export type KeptStatement = WitnessStatement & {
  /** In the log of another gateway: who stated it. Undefined where a witness keeps the statement alone. */
  readonly actor?: string | undefined;
};

/** The event under which another gateway records the statement. */
const WITNESSED: AuditEvent = 'CheckpointWitnessed';

/**
 * The statements that a witness has kept, at `path`: its file, or the data directory of another gateway, or the folder
 * of its log. Throws what the file system says.
 */
export async function* keptStatements(path: string): AsyncGenerator<KeptStatement> {
  for (const file of filesAt(path)) {
    const handle = await open(file);
    for await (const line of handle.readLines()) yield* statementsIn(line);
  }
}

function filesAt(path: string): readonly string[] {
  if (!statSync(path).isDirectory()) return [path];
  const inside = join(path, 'audit');
  return listSegments(existsSync(inside) ? inside : path).map((segment) => segment.path);
}

/**
 * The statements in a text: JSON objects, one in a line. Text before them, as in a line of syslog, is skipped, and so
 * are lines that are about something else. In an entry of another gateway's log, the statement is the payload. A copy
 * of `checkpoints.ndjson` is a witness too.
 */
export const statementsIn = (text: string): KeptStatement[] => text.split('\n').flatMap((line) => statementOf(line));

function statementOf(line: string): KeptStatement | [] {
  if (!line.includes('"signature"')) return []; // most lines of another gateway's log
  for (let from = line.indexOf('{'); from !== -1; from = line.indexOf('{', from + 1)) {
    const raw = mappingIn(line.slice(from));
    if (raw === undefined) continue; // the brace belongs to something else
    const isEntry = raw.event_type === WITNESSED;
    const given = isEntry ? (raw.payload as Readonly<Record<string, unknown>> | undefined) : raw;
    const { id, hash, timestamp, gateway, peers, signature, first_id } = given ?? {};
    const checkpoint = { id, hash, timestamp, signature, ...(peers !== undefined && { gateway, peers }) };
    if (!isWholeCheckpoint(checkpoint)) return [];
    return {
      ...checkpoint,
      first_id: Number.isSafeInteger(first_id) ? Number(first_id) : undefined,
      ...(isEntry && typeof raw.actor === 'string' && { actor: raw.actor }),
    };
  }
  return [];
}
