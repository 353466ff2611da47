/**
 * Other gateways' statements about their logs: forged, repeated, after a cut, after a rewrite (docs/audit-log.md,
 * Witnesses).
 */
import { describe, expect, test } from 'vitest';
import type { AuditDraft } from '../../src/core/audit/audit.ts';
import type { WitnessStatement } from '../../src/core/audit/witness.ts';
import { fail, ok } from '../../src/core/base/result.ts';
import type { Principal } from '../../src/core/identity/roles.ts';
import type { AuditReads, LogRequest } from '../../src/use-cases/logs.ts';
import { LogWitness } from '../../src/use-cases/witness.ts';
import { faultOf, testAudit, WRITER } from '../support/harness.ts';

const hashOf = (letter: string): string => letter.repeat(64);
const stated = (id: number, letter = 'a', more: Partial<WitnessStatement> = {}): WitnessStatement => ({
  id,
  hash: hashOf(letter),
  first_id: 1,
  timestamp: `2026-03-01T12:${String(id).padStart(2, '0')}:00.000Z`,
  signature: 'signature',
  ...more,
});

const entryOf = ({ eventType, actor, reason, payload }: AuditDraft) => ({
  event_type: eventType,
  actor,
  reason: reason ?? null,
  payload,
});

/** A witness over a log that is read page by page; `emptyPages` come first, as where the search is cut. */
function scene({ emptyPages = 0 } = {}) {
  const audit = testAudit();
  const requests: LogRequest[] = [];
  const reads: AuditReads = {
    read: async (request) => {
      requests.push(request);
      if (request.cursor === undefined ? emptyPages > 0 : Number(request.cursor) < emptyPages)
        return ok({ text: new Uint8Array(), next: String(Number(request.cursor ?? 0) + 1) });
      const { actor, eventTypes } = request.filter;
      const lines = audit.drafts
        .filter((draft) => draft.actor === actor && eventTypes?.includes(draft.eventType))
        .reverse()
        .slice(0, request.perPage)
        .map((draft) => `${JSON.stringify(entryOf(draft))}\n`);
      return ok({ text: new TextEncoder().encode(lines.join('')), next: undefined });
    },
  };
  const open = () => new LogWitness(audit, reads);
  const witness = open();
  const keep = (statement: WitnessStatement, principal: Principal = WRITER, by = witness) =>
    by.keep({ principal, statement });
  return { audit, requests, open, keep };
}

describe('the witness of other logs', () => {
  test('keeps a statement in the log, in the name and the org of who made it', async () => {
    const { audit, keep } = scene();
    const principal = { ...WRITER, orgId: 'branch' };
    expect(await keep(stated(10), principal)).toEqual(ok({ isNew: true }));
    expect(audit.drafts).toEqual([
      {
        eventType: 'CheckpointWitnessed',
        actor: 'key:writer',
        lineage: { orgId: 'branch', teamId: null, agentId: null },
        reason: undefined,
        payload: stated(10),
      },
    ]);
  });

  test('records a repetition once, also after a restart', async () => {
    const { audit, requests, open, keep } = scene();
    await keep(stated(10));
    expect(await keep(stated(10))).toEqual(ok({ isNew: false }));
    expect(await keep(stated(10), WRITER, open())).toEqual(ok({ isNew: false }));
    // Retention has deleted something since: that is news.
    expect(await keep(stated(10, 'a', { first_id: 5 }))).toEqual(ok({ isNew: true }));
    expect(audit.drafts.map(({ payload }) => payload?.first_id)).toEqual([1, 5]);
    // The log was read once for each start.
    expect(requests).toHaveLength(2);
  });

  test('a log that was cut or rewritten is refused, and recorded once', async () => {
    const { audit, open, keep } = scene();
    await keep(stated(10));
    await keep(stated(20));
    const cut = faultOf(await keep(stated(15, 'b')));
    expect(cut).toEqual({
      kind: 'conflict',
      detail:
        'the log had entry 20 at 2026-03-01T12:20:00.000Z, and is now said to end at 15: it was cut or restored, or this is another log',
    });
    expect(faultOf(await keep(stated(15, 'b')))).toEqual(cut);
    expect(faultOf(await keep(stated(15, 'b'), WRITER, open()))).toEqual(cut);
    expect(audit.drafts).toHaveLength(3);
    expect(audit.drafts[2]).toMatchObject({
      reason: expect.stringContaining('it was cut'),
      payload: stated(15, 'b'),
    });
    // Signed with the key of the log or not: what was stated before stays in this log.
    expect(faultOf(await keep(stated(20, 'b')))).toEqual({
      kind: 'conflict',
      detail: 'entry 20 had another hash at 2026-03-01T12:20:00.000Z: the log was rewritten, or this is another log',
    });
    expect(await keep(stated(21))).toEqual(ok({ isNew: true }));
  });

  test('each credential stands for a log of its own', async () => {
    const { audit, keep } = scene();
    await keep(stated(90));
    expect(await keep(stated(10, 'b'), { ...WRITER, subject: 'key:other' })).toEqual(ok({ isNew: true }));
    expect(faultOf(await keep(stated(91), { ...WRITER, scopes: ['read'] }))).toMatchObject({
      kind: 'insufficient_scope',
    });
    expect(audit.drafts.map(({ actor }) => actor)).toEqual(['key:writer', 'key:other']);
  });

  test('keeps nothing that could not be recorded', async () => {
    const { audit, keep } = scene();
    audit.broken = true;
    expect(faultOf(await keep(stated(10)))).toEqual({ kind: 'audit_unavailable' });
    audit.broken = false;
    expect(await keep(stated(10))).toEqual(ok({ isNew: true }));
  });

  test('statements of one credential are taken one at a time', async () => {
    const { audit, keep } = scene();
    const [first, second] = await Promise.all([keep(stated(10)), keep(stated(10, 'b'))]);
    expect([first, faultOf(second)]).toEqual([ok({ isNew: true }), expect.objectContaining({ kind: 'overloaded' })]);
    expect(audit.drafts).toHaveLength(1);
  });

  test('a search in a long log goes on where it was cut, but not for ever', async () => {
    const long = scene({ emptyPages: 3 });
    await long.keep(stated(10));
    expect(faultOf(await long.keep(stated(5), WRITER, long.open()))).toMatchObject({ kind: 'conflict' });
    const endless = scene({ emptyPages: 1000 });
    expect(await endless.keep(stated(10))).toEqual(ok({ isNew: true }));
    expect(endless.requests).toHaveLength(8);
  });

  test('reports that its own log cannot be read, and does not forget', async () => {
    const audit = testAudit();
    const unread = new LogWitness(audit, {
      read: async () => fail({ kind: 'overloaded', what: 'the reader', retryAfterSecs: 1 }),
    });
    expect(faultOf(await unread.keep({ principal: WRITER, statement: stated(10) }))).toMatchObject({
      kind: 'overloaded',
    });
    expect(audit.drafts).toEqual([]);
  });
});
