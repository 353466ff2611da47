import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { AuditReader } from '../../src/audit-log/reader.ts';
import { AUDIT_EVENTS, type AuditDraft, type AuditFilter } from '../../src/core/audit/audit.ts';
import type { OpId } from '../../src/core/base/ids.ts';
import { append, copies, freshDirectory, ids, NOON_MS, ofOrg, openWriter, queried, SEGMENT_ONE } from './log.ts';

describe('segment index', () => {
  test('a missing, truncated, corrupt or foreign index is rebuilt', async () => {
    const directory = freshDirectory();
    const writer = openWriter(directory, { segmentBytes: 100_000 });
    for (let nth = 0; nth < 10; nth += 1) append(writer, [...copies(99, ofOrg('acme')), ofOrg('rare')]);
    writer.close();
    const expected = [1000, 900, 800, 700, 600, 500, 400, 300, 200, 100];
    expect(await ids(new AuditReader(directory), { orgId: 'rare' })).toEqual(expected);
    const [index] = readdirSync(directory).filter((name) => name.endsWith('.idx'));
    const path = join(directory, index ?? '');
    const whole = readFileSync(path);
    const damages = [
      whole.subarray(0, whole.length - 1),
      Buffer.alloc(0),
      Buffer.from('nonsense'),
      Buffer.concat([whole, whole]),
    ];
    // Each byte of its beginning, which says what the rest is, and some of the rest.
    for (let at = 0; at < whole.length; at += at < 64 ? 1 : Math.ceil(whole.length / 40)) {
      const flipped = Buffer.from(whole);
      flipped[at] = (flipped[at] ?? 0) ^ 0x41;
      damages.push(flipped);
    }
    for (const damaged of damages) {
      writeFileSync(path, damaged);
      expect(await ids(new AuditReader(directory), { orgId: 'rare' })).toEqual(expected);
    }
    rmSync(path);
    expect(await ids(new AuditReader(directory), { orgId: 'rare' })).toEqual(expected);
    expect(readFileSync(path).equals(whole)).toBe(true);
  });

  test('an index with wrong values, or of a shorter segment, is not trusted', async () => {
    const directory = freshDirectory();
    const writer = openWriter(directory, { segmentBytes: 20_000 });
    for (let nth = 0; nth < 2; nth += 1) append(writer, [...copies(99, ofOrg('acme')), ofOrg('rare')]);
    writer.close();
    expect(await ids(new AuditReader(directory), { orgId: 'rare' })).toEqual([200, 100]);
    const path = join(directory, '0000000000000001.idx');
    const whole = readFileSync(path);
    // The facts about single values stand at its end.
    for (let end = 16; end <= 160; end += 16) {
      writeFileSync(
        path,
        Buffer.concat([whole.subarray(0, -end), Buffer.alloc(16), whole.subarray(whole.length - end + 16)]),
      );
      expect(await ids(new AuditReader(directory), { orgId: 'rare' })).toEqual([200, 100]);
    }
    const segment = readFileSync(join(directory, SEGMENT_ONE));
    rmSync(path);
    writeFileSync(join(directory, SEGMENT_ONE), segment.subarray(0, segment.indexOf('{"id":50,')));
    const reader = new AuditReader(directory);
    expect(await ids(reader, { orgId: 'rare' })).toEqual([200]);
    writeFileSync(join(directory, SEGMENT_ONE), segment);
    for (const who of [new AuditReader(directory), reader])
      expect(await ids(who, { orgId: 'rare' })).toEqual([200, 100]);
  });

  test('the indexer leaves an index beside each sealed segment and nothing to do', async () => {
    const directory = freshDirectory();
    const writer = openWriter(directory, { segmentBytes: 20_000 });
    for (let nth = 0; nth < 4; nth += 1) append(writer, copies(100));
    const reader = new AuditReader(directory);
    const indexes = () => readdirSync(directory).filter((name) => name.endsWith('.idx'));
    expect({ refresh: await reader.refresh(), indexes: indexes() }).toEqual({
      refresh: true,
      indexes: ['0000000000000001.idx'],
    });
    while (await reader.refresh());
    expect(indexes()).toEqual(['0000000000000001.idx', '0000000000000101.idx', '0000000000000201.idx']);
    append(writer, copies(100));
    while (await reader.refresh());
    expect(indexes()).toHaveLength(4);
    writer.close();
  });

  test('finds every event by its name, also where the index says which parts hold it', async () => {
    const directory = freshDirectory();
    const writer = openWriter(directory);
    append(
      writer,
      AUDIT_EVENTS.flatMap((eventType) => copies(200, { eventType })),
    );
    writer.close();
    const reader = new AuditReader(directory);
    for (const [at, eventType] of AUDIT_EVENTS.entries())
      expect({ eventType, ids: await ids(reader, { eventTypes: [eventType] }) }).toEqual({
        eventType,
        ids: Array.from({ length: 200 }, (_, nth) => 200 * (at + 1) - nth),
      });
  });

  const RARE: Partial<AuditDraft> = {
    eventType: 'PolicyReloaded',
    lineage: { orgId: 'rare', teamId: 'few', agentId: 'one' },
    opId: 't:rare' as OpId,
    decision: 'deny',
    actor: 'key:rare',
  };

  test.each<[string, AuditFilter]>([
    ['an org', { orgId: 'rare' }],
    ['a team', { teamId: 'few' }],
    ['an agent', { agentId: 'one' }],
    ['an operation', { opId: 't:rare' }],
    ['an actor', { actor: 'key:rare' }],
    ['an event', { eventTypes: ['PolicyReloaded'] }],
    ['a decision', { decision: 'deny' }],
    ['a time', { sinceMs: NOON_MS + 1_500, untilMs: NOON_MS + 1_501 }],
  ])('a search by a rare %s reads only the part of the log that holds it', async (_, filter) => {
    const directory = freshDirectory();
    const writer = openWriter(directory);
    append(
      writer,
      Array.from({ length: 3_000 }, (_entry, at) => ({
        ...(at === 1_500 ? RARE : ofOrg('acme')),
        timestampMs: NOON_MS + at,
      })),
    );
    // 24 parts in one segment: looking it up is a step, each part is one more.
    const growing = new AuditReader(directory, { maxStepsPerPage: 4 });
    while (await growing.refresh());
    expect(await queried(growing, filter, { perPage: 10 })).toMatchObject({
      ok: true,
      value: { items: [{ id: 1_501 }], next: undefined },
    });
    writer.close();
    const next = openWriter(directory, { segmentBytes: 1_000 });
    append(next, [ofOrg('acme')]);
    next.close();
    while (await new AuditReader(directory).refresh());
    const sealed = new AuditReader(directory, { maxStepsPerPage: 6 });
    expect(await queried(sealed, filter, { perPage: 10 })).toMatchObject({
      ok: true,
      value: { items: [{ id: 1_501 }], next: undefined },
    });
  });
});
