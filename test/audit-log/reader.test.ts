import { spawnSync } from 'node:child_process';
import { appendFileSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { AuditReader } from '../../src/audit-log/reader.ts';
import { AUDIT_EVENTS, type AuditDraft, type AuditEntry, type AuditFilter } from '../../src/core/audit/audit.ts';
import type { OpId } from '../../src/core/base/ids.ts';
import { runs } from '../support/runs.ts';
import { append, copies, freshDirectory, ids, NOON_MS, ofOrg, openWriter, queried, SEGMENT_ONE } from './log.ts';

const names = ['acme', 'globex', 'Ünïcode-組織', 'quo"te\\', 'a'];
type Row = Omit<AuditDraft, 'reason'> & { readonly timestampMs: number };
const rows: fc.Arbitrary<Row> = fc.record({
  eventType: fc.constantFrom(...AUDIT_EVENTS.slice(0, 5)),
  lineage: fc.record({
    orgId: fc.constantFrom(null, ...names),
    teamId: fc.constantFrom(null, ...names),
    agentId: fc.constantFrom(null, ...names),
  }),
  actor: fc.constantFrom('gateway', 'agent:acme/a/a', 'key:1'),
  opId: fc.option(
    fc.nat(30).map((nth) => `t${nth}:s` as OpId),
    { nil: undefined },
  ),
  decision: fc.constantFrom(undefined, 'allow', 'deny'),
  policy: fc.constantFrom(undefined, ...names),
  ruleId: fc.constantFrom(undefined, 'r1', 'r2'),
  cause: fc.constantFrom(undefined, 'rule', 'budget'),
  payload: fc.constantFrom(
    undefined,
    { action: 'tool.call', resource: 'web_組織' },
    { approval_id: 'a', action: 'file.write', resource: 'quo"te\\' },
    { halt_id: 'h', action: 7 },
  ),
  timestampMs: fc.nat(1000).map((ms) => NOON_MS + ms),
});
const filters: fc.Arbitrary<AuditFilter> = fc.record(
  {
    orgId: fc.constantFrom(...names, 'nobody'),
    teamId: fc.constantFrom(...names),
    agentId: fc.constantFrom(...names),
    eventType: fc.constantFrom(...AUDIT_EVENTS.slice(0, 6)),
    decision: fc.constantFrom('allow', 'deny'),
    opId: fc.nat(31).map((nth) => `t${nth}:s`),
    actor: fc.constantFrom('gateway', 'agent:acme/a/a', 'key:2'),
    policy: fc.constantFrom(...names, 'none'),
    ruleId: fc.constantFrom('r1', 'r3'),
    cause: fc.constantFrom('rule', 'halt'),
    action: fc.constantFrom('*', 'tool.*', 'file.write', 'nothing'),
    resource: fc.constantFrom('*', 'web_??', 'quo"*', 'nothing'),
    sinceMs: fc.nat(1000).map((ms) => NOON_MS + ms),
    untilMs: fc.nat(1000).map((ms) => NOON_MS + ms),
  },
  { requiredKeys: [] },
);

/** The actions that each pattern stands for here. */
const ACTIONS_OF: Readonly<Record<string, readonly string[]>> = {
  '*': ['tool.call', 'file.write'],
  'tool.*': ['tool.call'],
  'file.write': ['file.write'],
  nothing: [],
};
const RESOURCES_OF: Readonly<Record<string, readonly string[]>> = {
  '*': ['web_組織', 'quo"te\\'],
  'web_??': ['web_組織'],
  'quo"*': ['quo"te\\'],
  nothing: [],
};

function meets(row: Row, filter: AuditFilter): boolean {
  return (
    (filter.orgId === undefined || row.lineage.orgId === filter.orgId) &&
    (filter.teamId === undefined || row.lineage.teamId === filter.teamId) &&
    (filter.agentId === undefined || row.lineage.agentId === filter.agentId) &&
    (filter.eventTypes === undefined || filter.eventTypes.includes(row.eventType)) &&
    (filter.decision === undefined || row.decision === filter.decision) &&
    (filter.opId === undefined || row.opId === filter.opId) &&
    (filter.actor === undefined || row.actor === filter.actor) &&
    (filter.policy === undefined || row.policy === filter.policy) &&
    (filter.ruleId === undefined || row.ruleId === filter.ruleId) &&
    (filter.cause === undefined || row.cause === filter.cause) &&
    (filter.action === undefined || ACTIONS_OF[filter.action]!.includes(row.payload?.action as string)) &&
    (filter.resource === undefined || RESOURCES_OF[filter.resource]!.includes(row.payload?.resource as string)) &&
    (filter.sinceMs === undefined || row.timestampMs >= filter.sinceMs) &&
    (filter.untilMs === undefined || row.timestampMs < filter.untilMs)
  );
}

describe('reader', () => {
  test('any filter finds what a full scan finds, newest first, with a warm or new index', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(rows, { minLength: 1, maxLength: 700, size: 'max' }),
        fc.array(filters, { minLength: 1, maxLength: 6 }),
        fc.integer({ min: 1, max: 60 }),
        async (log, asked, perPage) => {
          const directory = freshDirectory();
          const writer = openWriter(directory, { segmentBytes: 90_000 });
          const warm = new AuditReader(directory);
          for (let from = 0; from < log.length; from += 50) {
            append(writer, log.slice(from, from + 50));
            if (from % 200 === 0) await queried(warm, { orgId: 'acme' }, { perPage: 1 });
          }
          for (const filter of asked) {
            const expected = log.flatMap((row, index) => (meets(row, filter) ? [index + 1] : [])).reverse();
            expect(await ids(warm, filter, perPage)).toEqual(expected);
            expect(await ids(new AuditReader(directory), filter, perPage)).toEqual(expected);
            expect(await ids(new AuditReader(directory, { maxStepsPerPage: 1 }), filter, perPage)).toEqual(expected);
            expect(await ids(new AuditReader(directory, { maxMsPerPage: 0 }), filter, perPage)).toEqual(expected);
          }
          writer.close();
          rmSync(directory, { recursive: true });
        },
      ),
      { numRuns: runs(10) },
    );
  });

  /** The directory of a log of so many entries, closed. */
  function logOf(count: number): string {
    const directory = freshDirectory();
    const writer = openWriter(directory);
    append(writer, copies(count));
    writer.close();
    return directory;
  }

  test('a page that takes too long returns what was found and a cursor', async () => {
    const directory = freshDirectory();
    const writer = openWriter(directory);
    for (let batch = 0; batch < 20; batch += 1) append(writer, copies(128, ofOrg('acme')));
    writer.close();
    let ms = 0;
    const reader = new AuditReader(directory, { maxMsPerPage: 10, nowMs: () => (ms += 4) });
    const page = await queried(reader, { orgId: 'acme' }, { perPage: 1000 });
    // The plan of the segment, and two chunks of 128.
    expect(page.ok && [page.value.items.length, page.value.next !== undefined]).toEqual([256, true]);
    expect(await ids(reader, { orgId: 'acme' })).toHaveLength(2560);
  });

  test('an entry without an org matches no org filter and reads back as written', async () => {
    const directory = freshDirectory();
    const writer = openWriter(directory);
    append(writer, [
      ofOrg(null),
      ofOrg('acme'),
      ofOrg('null'),
      { ...ofOrg('größe'), reason: 'naïve "quotes"', payload: { a: ['é'] } },
    ]);
    writer.close();
    const reader = new AuditReader(directory);
    expect(await ids(reader, { orgId: 'null' })).toEqual([3]);
    expect(await ids(reader, { orgId: '' })).toEqual([]);
    const page = await queried(reader, { orgId: 'größe' }, { perPage: 5 });
    expect(page).toMatchObject({
      ok: true,
      value: {
        next: undefined,
        items: [
          {
            id: 4,
            timestamp: '2026-03-01T12:00:00.000Z',
            event_type: 'ActionAllowed',
            lineage: { org_id: 'größe', team_id: 't', agent_id: 'a' },
            op_id: null,
            decision: null,
            reason: 'naïve "quotes"',
            policy: null,
            rule_id: null,
            actor: 'gateway',
            payload: { a: ['é'] },
          },
        ],
      },
    });
  });

  test('pages neither repeat nor lose an entry while new ones arrive', async () => {
    const directory = freshDirectory();
    const writer = openWriter(directory, { segmentBytes: 100_000 });
    append(writer, copies(600, ofOrg('acme')));
    const reader = new AuditReader(directory);
    const seen: number[] = [];
    let cursor: string | undefined;
    do {
      const page = await queried(reader, { orgId: 'acme' }, { perPage: 37, cursor });
      if (!page.ok) throw new Error(page.fault.kind);
      seen.push(...page.value.items.map(({ id }) => id));
      cursor = page.value.next;
      append(writer, copies(53, ofOrg('acme')));
    } while (cursor !== undefined);
    writer.close();
    expect(seen).toEqual(Array.from({ length: 600 }, (_, index) => 600 - index));
  });

  test('the last page has no cursor, and an invented cursor is refused', async () => {
    const directory = logOf(10);
    const reader = new AuditReader(directory);
    expect(await queried(reader, {}, { perPage: 10 })).toMatchObject({ ok: true, value: { next: undefined } });
    expect(await queried(new AuditReader(join(directory, 'nowhere')), {}, { perPage: 10 })).toEqual({
      ok: true,
      value: { items: [], next: undefined },
    });
    for (const cursor of [
      '',
      'x',
      Buffer.from('before:0').toString('base64url'),
      Buffer.from('before:1e3').toString('base64url'),
    ]) {
      expect(await queried(reader, {}, { perPage: 10, cursor })).toMatchObject({
        ok: false,
        fault: { kind: 'invalid_argument', field: 'cursor' },
      });
    }
  });

  test('a half-written line is not shown until it is complete', async () => {
    const directory = logOf(2);
    const path = join(directory, SEGMENT_ONE);
    const [, second] = readFileSync(path, 'utf8').split('\n');
    const reader = new AuditReader(directory);
    truncateSync(path, statSync(path).size - 20);
    expect(await ids(reader, {})).toEqual([1]);
    truncateSync(path, statSync(path).size - ((second?.length ?? 0) + 1 - 20));
    appendFileSync(path, `${second}\n`);
    expect(await ids(reader, {})).toEqual([2, 1]);
  });

  test('an entry of a failed append that was briefly visible is dropped everywhere', async () => {
    const directory = freshDirectory();
    const writer = openWriter(directory);
    append(writer, copies(300, ofOrg('acme')));
    const path = join(directory, SEGMENT_ONE);
    const before = readFileSync(path);
    append(writer, copies(300, ofOrg('globex')));
    writer.close();
    const reader = new AuditReader(directory);
    expect(await ids(reader, { orgId: 'globex' })).toHaveLength(300);
    writeFileSync(path, before);
    const again = openWriter(directory);
    append(again, copies(300, ofOrg('initech')));
    again.close();
    expect(await ids(reader, { orgId: 'initech' })).toHaveLength(300);
    expect(await ids(reader, { orgId: 'globex' })).toEqual([]);
  });

  test('an entry of an unknown newer event matches all but event filters', async () => {
    const directory = freshDirectory();
    const writer = openWriter(directory, { segmentBytes: 100_000 });
    append(writer, copies(300, ofOrg('acme')));
    writer.close();
    const path = join(directory, SEGMENT_ONE);
    writeFileSync(path, readFileSync(path, 'utf8').replaceAll('"ActionAllowed"', '"ActionDreamt"'));
    const again = openWriter(directory);
    append(again, copies(2, ofOrg('acme')));
    again.close();
    expect(await ids(new AuditReader(directory), { orgId: 'acme' })).toHaveLength(302);
    expect(await ids(new AuditReader(directory), { eventTypes: ['ActionAllowed'] })).toEqual([302, 301]);
  });

  test('a log whose oldest part is deleted during reading is read to its end', async () => {
    const directory = freshDirectory();
    const writer = openWriter(directory, { segmentBytes: 150_000 });
    for (let nth = 0; nth < 4; nth += 1) append(writer, copies(1000));
    writer.close();
    const reader = new AuditReader(directory);
    const exporting = reader.export({}, 'ndjson');
    let text = (await exporting.next()).value ?? '';
    rmSync(join(directory, '0000000000001001.ndjson'));
    rmSync(join(directory, SEGMENT_ONE));
    for await (const piece of exporting) text += piece;
    expect(
      text
        .trimEnd()
        .split('\n')
        .map((line: string) => (JSON.parse(line) as AuditEntry).id),
    ).toEqual(Array.from({ length: 2000 }, (_, index) => 4000 - index));
    const midway = reader.export({}, 'ndjson');
    text = (await midway.next()).value ?? '';
    rmSync(join(directory, '0000000000003001.ndjson')); // the one that is being read
    for await (const piece of midway) text += piece;
    expect(
      text
        .trimEnd()
        .split('\n')
        .map((line: string) => (JSON.parse(line) as AuditEntry).id),
    ).toEqual(expect.arrayContaining([4000, 3000, 2001]));
  });

  test('a segment in the middle that lost its end shows what it still holds', async () => {
    const directory = freshDirectory();
    const writer = openWriter(directory, { segmentBytes: 20_000 });
    for (let nth = 0; nth < 3; nth += 1) append(writer, copies(100));
    writer.close();
    const path = join(directory, '0000000000000101.ndjson');
    truncateSync(path, statSync(path).size - 20);
    const expected = Array.from({ length: 300 }, (_, index) => 300 - index).filter((id) => id !== 200);
    const reader = new AuditReader(directory);
    for (const who of [reader, reader, new AuditReader(directory)]) expect(await ids(who, {})).toEqual(expected);
  });

  test('a log on a read-only disk is readable', async (context) => {
    const disk = freshDirectory();
    if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', disk]).status !== 0)
      return context.skip('mounting needs a privilege this machine does not give');
    onTestFinished(() => {
      spawnSync('umount', ['-l', disk]);
    });
    const writer = openWriter(disk, { segmentBytes: 20_000 });
    for (let nth = 0; nth < 3; nth += 1) append(writer, copies(100));
    writer.close();
    expect(spawnSync('mount', ['-o', 'remount,ro', disk]).status).toBe(0);
    expect(await ids(new AuditReader(disk), {})).toHaveLength(300);
  });

  test('a time span includes its first millisecond and excludes its end', async () => {
    const directory = freshDirectory();
    const writer = openWriter(directory);
    append(
      writer,
      Array.from({ length: 256 }, (_entry, at) => ({ timestampMs: NOON_MS + at })),
    );
    writer.close();
    const reader = new AuditReader(directory);
    // Entries 1 to 128 are one part, 129 to 256 the next.
    expect(await ids(reader, { sinceMs: NOON_MS + 127, untilMs: NOON_MS + 129 })).toEqual([129, 128]);
    expect(await ids(reader, { sinceMs: NOON_MS + 127, untilMs: NOON_MS + 128 })).toEqual([128]);
  });

  test('times of any year can be asked for', async () => {
    const directory = logOf(2);
    const reader = new AuditReader(directory);
    expect(await ids(reader, { sinceMs: -8.64e15, untilMs: 8.64e15 })).toEqual([2, 1]);
    expect(await ids(reader, { sinceMs: 8.64e15 })).toEqual([]);
    expect(await ids(reader, { untilMs: -8.64e15 })).toEqual([]);
  });

  test('lines of before there were causes are found beside those with one', async () => {
    const directory = freshDirectory();
    const writer = openWriter(directory);
    append(writer, [{ actor: 'key:old' }, { actor: 'key:new', decision: 'deny', cause: 'budget' }]);
    writer.close();
    const path = join(directory, SEGMENT_ONE);
    writeFileSync(path, readFileSync(path, 'utf8').replace('"cause":null,', ''));
    const reader = new AuditReader(directory);
    expect({ old: await ids(reader, { actor: 'key:old' }), new: await ids(reader, { actor: 'key:new' }) }).toEqual({
      old: [1],
      new: [2],
    });
  });

  test.each([
    ['a field with another name', '"actor":"gateway"', '"aktor":"gateway"'],
    ['a field that is missing', '"decision":null,', ''],
    ['a number where text belongs', '"actor":"gateway"', '"actor":7'],
    ['a word where text belongs', '"reason":null', '"reason":true'],
  ])('a line with %s is JSON but no entry: searches skip it alone', async (_what, sound, changed) => {
    const directory = logOf(3);
    const path = join(directory, SEGMENT_ONE);
    const [first = '', second = '', third = ''] = readFileSync(path, 'utf8').split('\n');
    expect(second).toContain(sound);
    writeFileSync(path, [first, second.replace(sound, changed), third, ''].join('\n'));
    expect(await ids(new AuditReader(directory), {})).toEqual([3, 1]);
  });

  test.each([
    ['in the part that is indexed', 129, 300],
    ['behind it', 129, 140],
    ['at the beginning of the log', 1, 10],
  ])(
    'a line with a damaged id, the first of those read together %s, hides no other',
    async (_where, damaged, count) => {
      const directory = logOf(count);
      const path = join(directory, SEGMENT_ONE);
      writeFileSync(
        path,
        readFileSync(path, 'utf8').replace(`{"id":${damaged},`, `{"id":${String(damaged).replace('1', 'q')},`),
      );
      const expected = Array.from({ length: count }, (_entry, at) => count - at).filter((id) => id !== damaged);
      const reader = new AuditReader(directory);
      for (const perPage of [1_000, 50]) expect(await ids(reader, {}, perPage)).toEqual(expected);
      expect(await ids(new AuditReader(directory, { maxStepsPerPage: 1 }), {})).toEqual(expected);
    },
  );
});
