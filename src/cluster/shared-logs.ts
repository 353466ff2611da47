/** The audit logs of all gateways of a cluster, as one. */
import { setTimeout as pause } from 'node:timers/promises';
import { cursorOf, parseCursor } from '../audit-log/reader.ts';
import type { AuditFilter } from '../core/audit/audit.ts';
import { ok, type Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import type { LogAsked, LogPiece, Membership, Peers } from '../ports/cluster.ts';
import type { AuditReads, LogRequest } from '../use-cases/logs.ts';
import type { OtherLog } from '../use-cases/policy-replay.ts';
import { type LogRead, type LogSource, readLogExport, readLogPage } from './log-listing.ts';

/** In one answer to another gateway, whose bus takes little more. */
const MAX_PIECE_BYTES = 512 * 1024;

/** Reads the logs of all, and answers what others ask of this gateway's. */
export function shareLogs(reads: AuditReads, membership: Membership, peers: Peers): AuditReads {
  peers.serve('log', (asked) => fittingPiece(reads, asked));
  const own: LogSource = { name: membership.name, read: (asked) => pieceOf(reads, asked) };
  return {
    read: async ({ format, perPage, ...request }, orgId) => {
      const others = othersOf(membership, peers);
      const asked: LogRead = { ...request, most: perPage, orgId };
      if (format === 'page' || format === 'lines') return pageOf(await readLogPage(own, others, asked));
      const read = await readLogExport(own, others, format, asked);
      if (!read.ok) return read;
      const { text, next, incomplete } = read.value;
      return ok({ text: Buffer.from(text), next, incomplete });
    },
  };
}

function othersOf(membership: Membership, peers: Peers): readonly LogSource[] {
  return membership
    .others()
    .toSorted((left, right) => (left.name < right.name ? -1 : 1))
    .map(({ run, name }): LogSource => {
      const read: LogSource['read'] = async (asked) => {
        const answered = await peers.ask(run, 'log', asked);
        return answered.ok ? answered.value : answered;
      };
      return { name, read };
    });
}

/** In one piece of another gateway's log. */
const MOST_OF_ANOTHER = 250;
/** Another gateway may be paused for a moment, and a replay that is cut begins anew. */
const MAX_TRIES = 5;
const RETRY_MS = 1_000;

/** The logs of the other gateways, each read by itself. */
export const otherLogs = (membership: Membership, peers: Peers): readonly OtherLog[] =>
  othersOf(membership, peers).map(({ name, read }): OtherLog => {
    const ask = (filter: AuditFilter, most: number, before: number | undefined) =>
      read({ filter, form: 'lines', most, before, orgId: null });
    return {
      name,
      answers: async () => (await ask({}, 1, 1)).ok, // there is nothing before the first entry
      read: async (filter, before) => {
        for (let attempt = 1; ; attempt += 1) {
          const piece = await ask(filter, MOST_OF_ANOTHER, before);
          if (piece.ok || attempt === MAX_TRIES) return piece;
          await pause(RETRY_MS);
        }
      },
    };
  });

function pageOf(read: Awaited<ReturnType<typeof readLogPage>>): Awaited<ReturnType<AuditReads['read']>> {
  if (!read.ok) return read;
  const { lines, next, incomplete } = read.value;
  const rest = `"next_cursor":${JSON.stringify(next ?? null)},"incomplete":${JSON.stringify(incomplete)}`;
  return ok({ text: Buffer.from(`{"entries":[${lines.join()}],${rest}}`), next });
}

async function pieceOf(
  reads: AuditReads,
  { filter, form, most, before, orgId }: LogAsked,
): Promise<Result<LogPiece, Fault>> {
  const cursor = before === undefined ? undefined : cursorOf(before);
  const request: LogRequest = { filter, format: form, perPage: most, cursor };
  const read = await reads.read(request, orgId);
  if (!read.ok) return read;
  const { text, next } = read.value;
  return ok({ text: Buffer.from(text).toString(), before: next === undefined ? undefined : parseCursor(next) });
}

/** If entries are long, a piece has fewer. */
async function fittingPiece(reads: AuditReads, asked: LogAsked): Promise<Result<LogPiece, Fault>> {
  for (let { most } = asked; ; most = Math.ceil(most / 8)) {
    const piece = await pieceOf(reads, { ...asked, most });
    if (!piece.ok || most === 1 || Buffer.byteLength(piece.value.text) <= MAX_PIECE_BYTES) return piece;
  }
}
