/** The audit logs of all gateways of a cluster, as one. */
import { cursorOf, parseCursor } from '../audit-log/reader.ts';
import { type LogRead, type LogSource, readLogExport, readLogPage } from '../cluster/log-listing.ts';
import { ok, type Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import type { LogAsked, LogPiece, Membership, Peers } from '../ports/cluster.ts';
import type { AuditReads, LogRequest } from '../use-cases/logs.ts';

/** In one answer to another gateway, whose bus takes little more. */
const MAX_PIECE_BYTES = 512 * 1024;

/** Reads the logs of all, and answers what others ask of this gateway's. */
export function shareLogs(reads: AuditReads, membership: Membership, peers: Peers): AuditReads {
  peers.serve('log', (asked) => fittingPiece(reads, asked));
  const own: LogSource = { name: membership.name, read: (asked) => pieceOf(reads, asked) };
  return {
    read: async ({ format, perPage, ...request }, orgId) => {
      const others = membership
        .others()
        .toSorted((left, right) => (left.name < right.name ? -1 : 1))
        .map(({ run, name }): LogSource => {
          const read: LogSource['read'] = async (asked) => {
            const answered = await peers.ask(run, 'log', asked);
            return answered.ok ? answered.value : answered;
          };
          return { name, read };
        });
      const asked: LogRead = { ...request, most: perPage, orgId };
      if (format === 'page' || format === 'lines') return pageOf(await readLogPage(own, others, asked));
      const read = await readLogExport(own, others, format, asked);
      if (!read.ok) return read;
      const { text, next, incomplete } = read.value;
      return ok({ text: Buffer.from(text), next, incomplete });
    },
  };
}

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

/** Where entries are long, there are fewer in a piece. */
async function fittingPiece(reads: AuditReads, asked: LogAsked): Promise<Result<LogPiece, Fault>> {
  for (let { most } = asked; ; most = Math.ceil(most / 8)) {
    const piece = await pieceOf(reads, { ...asked, most });
    if (!piece.ok || most === 1 || Buffer.byteLength(piece.value.text) <= MAX_PIECE_BYTES) return piece;
  }
}
