/** What a witness keeps of the log: that it had this entry at its end, and where it began (docs/audit-log.md). */
import { isWholeCheckpoint } from '../checkpoint.ts';

export type WitnessStatement = {
  readonly id: number;
  readonly hash: string;
  /** The first entry that retention has left; undefined where that could not be read. */
  readonly first_id?: number | undefined;
  readonly timestamp: string;
  readonly signature: string;
};

/** The event under which another gateway records the statement. */
const WITNESSED = 'CheckpointWitnessed';

/**
 * The statements in a text that a witness has kept: JSON objects, one in a line. What is before them, as in a line of
 * syslog, is skipped, and so are lines that are about something else. Of an entry of another gateway's log, it is the
 * payload. A copy of `checkpoints.ndjson` is a witness too.
 */
export const statementsIn = (text: string): WitnessStatement[] => text.split('\n').flatMap((line) => statementOf(line));

function statementOf(line: string): WitnessStatement | [] {
  for (let from = line.indexOf('{'); from !== -1; from = line.indexOf('{', from + 1)) {
    const raw = objectIn(line.slice(from));
    if (raw === undefined) continue;
    const given = raw.event_type === WITNESSED ? (raw.payload as Readonly<Record<string, unknown>>) : raw;
    const { id, hash, timestamp, signature, first_id } = given ?? {};
    const checkpoint = { id, hash, timestamp, signature };
    if (isWholeCheckpoint(checkpoint))
      return { ...checkpoint, first_id: Number.isSafeInteger(first_id) ? Number(first_id) : undefined };
  }
  return [];
}

function objectIn(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const raw: unknown = JSON.parse(text);
    return typeof raw === 'object' && raw !== null ? (raw as Readonly<Record<string, unknown>>) : undefined;
  } catch {
    return undefined; // the brace belongs to something else
  }
}
