import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createCheckpointer, loadCheckpointKey } from '../../src/audit-log/checkpoint.ts';
import { hashOfLine } from '../../src/audit-log/line.ts';
import { explainNotice } from '../../src/audit-log/recovery.ts';
import { StrangersShare } from '../../src/audit-log/strangers-share.ts';
import { type AuditWriter, type AuditWriterOptions, openAuditWriter } from '../../src/audit-log/writer.ts';
import { type AuditDraft, NO_LINEAGE } from '../../src/core/audit/audit.ts';
import { encodeDraft } from '../../src/core/audit/audit-line.ts';
import type { OpId } from '../../src/core/base/ids.ts';
import { shrunk } from './log.ts';

const NOON_MS = Date.UTC(2026, 2, 1, 12);
const FIRST = '0000000000000001.ndjson';
const GENESIS = '0000000000000000000000000000000000000000000000000000000000000000';

let directory: string;
describe('writer', () => {
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'svc-audit-'));
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  function open(options: Partial<AuditWriterOptions> = {}) {
    const opened = openAuditWriter({ directory, fsync: 'never', nowMs: () => NOON_MS, ...options });
    if (!opened.ok) throw new Error(`locked by ${opened.fault.holder}`);
    return opened.value;
  }

  const body = (nth: number) =>
    encodeDraft({ eventType: 'ActionAllowed', lineage: NO_LINEAGE, actor: `agent:${nth}` }, NOON_MS + nth);
  const read = (name = FIRST) => readFileSync(join(directory, name), 'utf8');

  function write(writer: AuditWriter, from: number, count: number) {
    const bodies = Array.from({ length: count }, (_, index) => body(from + index)).join('\n');
    expect(writer.append(bodies, count)).toEqual({ ok: true, value: { firstId: from } });
  }

  const GOLDEN_DRAFTS: readonly (readonly [AuditDraft, number])[] = [
    [
      {
        eventType: 'ActionAllowed',
        lineage: { orgId: 'acme', teamId: 'search', agentId: 'crawler-7' },
        actor: 'agent:acme/search/crawler-7',
        opId: '4bf92f:00f067' as OpId,
        decision: 'allow',
        reason: 'web tools only',
        policy: 'search-team',
        ruleId: 'web-only',
        payload: { action: 'tool.call', resource: 'web_search', attributes: { size: 12 } },
      },
      NOON_MS,
    ],
    [{ eventType: 'PolicyReloaded', lineage: NO_LINEAGE, actor: 'gateway' }, NOON_MS + 1],
    [
      {
        eventType: 'ActionDenied',
        lineage: { orgId: null, teamId: 'équipe', agentId: 'a"b' },
        actor: 'anonymous',
        opId: 't:s' as OpId,
        decision: 'deny',
        reason: 'line\nfeed',
        payload: { größe: '\u0007', n: 1.5, lone: '\ud800' },
      },
      NOON_MS + 1,
    ],
  ];

  const GOLDEN = `\
{"id":1,"timestamp":"2026-03-01T12:00:00.000Z","event_type":"ActionAllowed","lineage":{"org_id":"acme","team_id":"search","agent_id":"crawler-7"},"op_id":"4bf92f:00f067","decision":"allow","reason":"web tools only","policy":"search-team","rule_id":"web-only","cause":null,"actor":"agent:acme/search/crawler-7","payload":{"action":"tool.call","resource":"web_search","attributes":{"size":12}},"prev_hash":"${GENESIS}","hash":"324ba2f81c8c0ae4cabbb94b06d7b566f21f873228f5f36222b63e4143a2d910"}
{"id":2,"timestamp":"2026-03-01T12:00:00.001Z","event_type":"PolicyReloaded","lineage":{"org_id":null,"team_id":null,"agent_id":null},"op_id":null,"decision":null,"reason":null,"policy":null,"rule_id":null,"cause":null,"actor":"gateway","payload":{},"prev_hash":"324ba2f81c8c0ae4cabbb94b06d7b566f21f873228f5f36222b63e4143a2d910","hash":"5da2fdf08f660b0234f1fc923c8a612b91e434c3a63d4c8d6f6df736d7a49323"}
{"id":3,"timestamp":"2026-03-01T12:00:00.001Z","event_type":"ActionDenied","lineage":{"org_id":null,"team_id":"équipe","agent_id":"a\\"b"},"op_id":"t:s","decision":"deny","reason":"line\\nfeed","policy":null,"rule_id":null,"cause":null,"actor":"anonymous","payload":{"größe":"\\u0007","n":1.5,"lone":"\\ud800"},"prev_hash":"5da2fdf08f660b0234f1fc923c8a612b91e434c3a63d4c8d6f6df736d7a49323","hash":"52570f6285336516a7a4e082d0c8f5821305606247b74d12b33e018a1bfd5b84"}
`;

  test('three entries give exactly these bytes, in one batch or in three', () => {
    const bodies = GOLDEN_DRAFTS.map(([draft, ms]) => encodeDraft(draft, ms));
    const { writer } = open();
    expect(writer.append(bodies.join('\n'), 3)).toEqual({ ok: true, value: { firstId: 1 } });
    writer.close();
    expect(read()).toBe(GOLDEN);

    rmSync(join(directory, FIRST));
    const again = open({ fsync: 'always' }).writer;
    bodies.forEach((one, index) => expect(again.append(one, 1)).toEqual({ ok: true, value: { firstId: index + 1 } }));
    expect(again.head()).toEqual({ id: 3, hash: '52570f6285336516a7a4e082d0c8f5821305606247b74d12b33e018a1bfd5b84' });
    again.close();
    expect(read()).toBe(GOLDEN);
  });

  test('lines of one of several gateways name it, sealed by the hash', () => {
    const name = 'gateway "één"';
    const { writer } = open({ gateway: name });
    // More lines than the buffer was made for: what the name takes has to be counted.
    write(writer, 1, 2_000);
    const head = writer.head();
    writer.close();
    const lines = read().trimEnd().split('\n');
    expect(lines[0]).toContain(`,"payload":{},"gateway":"gateway \\"één\\"","prev_hash":"${GENESIS}"`);
    expect(lines.every((line) => JSON.parse(line).gateway === name)).toBe(true);
    expect(JSON.parse(lines.at(-1)!)).toMatchObject({ id: 2_000, hash: head.hash });
    expect(hashOfLine(Buffer.from(lines[0]!))).toBe(JSON.parse(lines[0]!).hash);
    expect(hashOfLine(Buffer.from(lines[0]!.replace('één', 'een')))).not.toBe(JSON.parse(lines[0]!).hash);
  });

  test('a reopened log continues with the next id and the last hash', () => {
    const first = open().writer;
    write(first, 1, 2);
    const head = first.head();
    first.close();
    const { writer, notices } = open();
    expect(notices).toEqual([]);
    expect(writer.head()).toEqual(head);
    write(writer, 3, 1);
    writer.close();
    expect(JSON.parse(read().split('\n')[2] ?? '')).toMatchObject({ id: 3, prev_hash: head.hash });
  });

  test('a full or old segment is followed by one named after its first id, chained', () => {
    let nowMs = NOON_MS;
    const { writer } = open({ segmentBytes: 1000, segmentAgeMs: 60_000, nowMs: () => nowMs });
    write(writer, 1, 4); // one batch is never divided
    const headOfFirst = writer.head();
    write(writer, 5, 1);
    nowMs += 59_999;
    write(writer, 6, 1);
    nowMs += 1;
    write(writer, 7, 1);
    writer.close();
    expect(
      readdirSync(directory)
        .filter((name) => name.endsWith('.ndjson'))
        .sort(),
    ).toEqual([FIRST, '0000000000000005.ndjson', '0000000000000007.ndjson']);
    expect(JSON.parse(read('0000000000000005.ndjson').split('\n')[0] ?? '')).toMatchObject({
      id: 5,
      prev_hash: headOfFirst.hash,
    });
    const reopened = open().writer;
    expect(reopened.head().id).toBe(7);
    reopened.close();
  });

  test('a torn last line is cut off and kept aside, with one notice', () => {
    const { writer } = open();
    write(writer, 1, 2);
    const headAtTwo = writer.head();
    const whole = read().length;
    write(writer, 3, 1);
    writer.close();
    const full = readFileSync(join(directory, FIRST));
    const isNearAnEnd = (end: number): boolean => end < whole + 5 || end > full.length - 5;
    for (let end = whole + 1; end < full.length; end += isNearAnEnd(end) ? 1 : 7) {
      writeFileSync(join(directory, FIRST), full.subarray(0, end));
      const opened = open();
      expect(opened.notices).toEqual([
        { kind: 'torn-tail', segment: FIRST, bytes: end - whole, keptAs: `${FIRST}.torn` },
      ]);
      expect(opened.writer.head()).toEqual(headAtTwo);
      write(opened.writer, 3, 1);
      opened.writer.close();
      expect(readFileSync(join(directory, FIRST)).equals(full)).toBe(true);
      expect(readFileSync(join(directory, `${FIRST}.torn`)).equals(full.subarray(whole, end))).toBe(true);
      rmSync(join(directory, `${FIRST}.torn`));
    }
  });

  test.skipIf(!existsSync('/dev/full'))('a torn line is cut off also on a full disk, and the operator is told', () => {
    const { writer } = open();
    write(writer, 1, 2);
    const head = writer.head();
    writer.close();
    appendFileSync(join(directory, FIRST), '{"id":3,');
    symlinkSync('/dev/full', join(directory, `${FIRST}.torn`));
    const opened = open();
    expect(opened.notices.map(explainNotice)).toEqual([
      `audit log: removed 8 bytes of an unfinished write from the end of ${FIRST}; could not keep them`,
    ]);
    expect(opened.writer.head()).toEqual(head);
    opened.writer.close();
    expect(read().endsWith('"}\n')).toBe(true);
  });

  test('zeros after the last entry, as a lost page leaves them, are cut off', () => {
    const { writer } = open();
    write(writer, 1, 1);
    writer.close();
    appendFileSync(join(directory, FIRST), Buffer.alloc(200_000));
    const opened = open();
    expect(opened.notices.map(explainNotice)).toEqual([
      `audit log: removed 200000 bytes of an unfinished write from the end of ${FIRST}; kept as ${FIRST}.torn`,
    ]);
    expect(opened.writer.head().id).toBe(1);
    opened.writer.close();
  });

  test('an empty segment is removed, one without a whole entry set aside', () => {
    const { writer } = open();
    write(writer, 1, 2);
    writer.close();
    writeFileSync(join(directory, '0000000000000003.ndjson'), '');
    const empty = open();
    expect({ notices: empty.notices, exists: existsSync(join(directory, '0000000000000003.ndjson')) }).toEqual({
      notices: [],
      exists: false,
    });
    empty.writer.close();
    writeFileSync(join(directory, '0000000000000003.ndjson'), 'garbage\nmore');
    const garbage = open();
    expect(garbage.notices).toEqual([
      {
        kind: 'unreadable-segment',
        segment: '0000000000000003.ndjson',
        bytes: 12,
        keptAs: '0000000000000003.ndjson.torn',
      },
    ]);
    write(garbage.writer, 3, 1);
    garbage.writer.close();
    expect(existsSync(join(directory, '0000000000000003.ndjson.torn'))).toBe(true);
  });

  test('setting a segment aside twice keeps the first copy', () => {
    const { writer } = open();
    write(writer, 1, 2);
    writer.close();
    for (const garbage of ['the first\n', 'the second\n']) {
      writeFileSync(join(directory, '0000000000000003.ndjson'), garbage);
      open().writer.close();
    }
    const kept = readdirSync(directory)
      .filter((name) => name.startsWith('0000000000000003.'))
      .map((name) => read(name))
      .join('');
    expect(kept).toContain('the first\n');
    expect(kept).toContain('the second\n');
  });

  test('a log that ends before a signed entry says so when opened, and continues', () => {
    const { writer } = open();
    write(writer, 1, 5);
    const key = loadCheckpointKey(join(directory, 'key.pem'));
    createCheckpointer({ directory, key, nowMs: () => NOON_MS }).record(writer.head());
    writer.close();
    const whole = read();
    const untouched = open();
    expect(untouched.notices).toEqual([]);
    untouched.writer.close();
    writeFileSync(join(directory, FIRST), `${whole.split('\n').slice(0, 3).join('\n')}\n`);
    const cut = open();
    expect(cut.notices.map(explainNotice)).toEqual([
      'audit log: it ends at entry 3, but the checkpoint from 2026-03-01T12:00:00.000Z covers entry 5: the entries in between are MISSING; stop the gateway and restore them, or continue without them, which `svc audit verify` will report',
    ]);
    expect(cut.writer.head().id).toBe(3);
    cut.writer.close();
    appendFileSync(join(directory, 'checkpoints.ndjson'), 'which somebody has damaged\n');
    rmSync(join(directory, FIRST));
    const gone = open();
    expect(gone.notices).toEqual([{ kind: 'cut', id: 0, checkpoint: expect.objectContaining({ id: 5 }) }]);
    gone.writer.close();
  });

  test('a log with a missing first or middle file says so when opened, and continues', () => {
    const { writer } = open({ segmentBytes: 1 });
    for (const from of [1, 3, 5, 7]) write(writer, from, 2);
    writer.close();
    const segment = (firstId: number): string => join(directory, `000000000000000${firstId}.ndjson`);
    rmSync(segment(3));
    const gap = open();
    const REMEDY =
      'stop the gateway and restore the file that contained them, or continue without it, which `svc audit verify` will report';
    expect(gap.notices.map(explainNotice)).toEqual([
      `audit log: entries 3 to 4 are MISSING before 0000000000000005.ndjson; ${REMEDY}`,
    ]);
    expect(gap.writer.head().id).toBe(8);
    gap.writer.close();
    rmSync(segment(1));
    const headless = open();
    expect(headless.notices.map(explainNotice)).toEqual([
      `audit log: entries 1 to 4 are MISSING before 0000000000000005.ndjson; ${REMEDY}`,
    ]);
    headless.writer.close();
  });

  test('entries deleted by retention, even interrupted, are not reported as missing', async () => {
    const { writer } = open({ segmentBytes: 1 });
    for (const from of [1, 3, 5, 7]) write(writer, from, 2);
    writer.close();
    const [kept, left] = [read('0000000000000005.ndjson'), read('0000000000000003.ndjson')];
    const key = loadCheckpointKey(join(directory, 'key.pem'));
    await shrunk(directory, kept.length * 2, key);
    expect(readdirSync(directory)).not.toContain('0000000000000003.ndjson');
    writeFileSync(join(directory, '0000000000000003.ndjson'), left);
    const opened = open();
    expect(opened.notices).toEqual([]);
    opened.writer.close();
  });

  test('the share of strangers never makes retention delete what others wrote', async () => {
    const { writer } = open({ segmentBytes: 1 });
    for (const from of [1, 3, 5, 7]) write(writer, from, 2);
    writer.close();
    const key = loadCheckpointKey(join(directory, 'key.pem'));
    const bytes = read('0000000000000003.ndjson').length;
    const share = new StrangersShare(directory, 2 * bytes);
    // The first segment is somebody's record; the others are a flood of strangers that came after it.
    for (const from of [3, 5, 7]) share.add(join(directory, `000000000000000${from}.ndjson`), bytes);
    expect(share.isFull).toBe(true);
    share.save();
    const found = new StrangersShare(directory, 2 * bytes);
    const retain = (strangers: StrangersShare | undefined, maxBytes: number) =>
      shrunk(directory, maxBytes, key, { strangers });
    expect(await retain(found, 2 * bytes)).toEqual([]);
    expect(await retain(found, bytes)).toEqual(['0000000000000001.ndjson']);
    found.drop(['0000000000000003.ndjson']);
    expect([found.of('0000000000000003.ndjson'), found.of('0000000000000005.ndjson'), found.isFull]).toEqual([
      0,
      bytes,
      true,
    ]);
    expect(await retain(undefined, 2 * bytes)).toEqual(['0000000000000003.ndjson']);
  });

  test('a copy made during retention lacks nothing when it is opened', async () => {
    const { writer } = open({ segmentBytes: 1 });
    for (const from of [1, 3, 5, 7]) write(writer, from, 2);
    writer.close();
    const [kept, copied] = [read('0000000000000005.ndjson'), read('0000000000000001.ndjson')];
    await shrunk(directory, kept.length * 2, loadCheckpointKey(join(directory, 'key.pem')));
    writeFileSync(join(directory, '0000000000000001.ndjson'), copied);
    const opened = open();
    expect(opened.notices).toEqual([]);
    opened.writer.close();
  });

  test('a last entry that does not match its hash is reported, and the gateway starts', () => {
    const { writer } = open();
    write(writer, 1, 2);
    const { hash } = writer.head();
    writer.close();
    writeFileSync(join(directory, FIRST), read().replace('agent:2', 'agent:9'));
    const opened = open();
    expect(opened.notices).toEqual([{ kind: 'hash-mismatch', segment: FIRST, id: 2 }]);
    expect(opened.writer.head()).toEqual({ id: 2, hash });
    opened.writer.close();
  });

  test.each([9, 90, 200])('a batch of %s entries of three-byte letters is written whole at any size', (count) => {
    const reason = '統'.repeat(10_000);
    const { writer } = open();
    write(writer, 1, 1);
    const long = encodeDraft({ eventType: 'ActionDenied', lineage: NO_LINEAGE, actor: 'gateway', reason }, NOON_MS);
    expect(writer.append(Array.from({ length: count }, () => long).join('\n'), count)).toEqual({
      ok: true,
      value: { firstId: 2 },
    });
    writer.close();
    const entries = read()
      .trimEnd()
      .split('\n')
      .slice(1)
      .map((line) => JSON.parse(line) as { id: number; reason: string; hash: string });
    expect(entries.map(({ id }) => id)).toEqual(Array.from({ length: count }, (_, nth) => nth + 2));
    expect(entries.every((entry) => entry.reason === reason)).toBe(true);
    const { notices, writer: again } = open();
    expect({ notices, head: again.head() }).toEqual({
      notices: [],
      head: { id: count + 1, hash: entries.at(-1)?.hash },
    });
    again.close();
  });

  test('text of an agent in the last entry cannot move the end of the log', () => {
    // Looks like the beginning of entry 77, every 16 bytes; one of the paddings puts one where the end of the file is
    // begun to be read.
    const list = Array.from({ length: 6_000 }, () => ({ id: 77, n: 1 }));
    for (let padding = 0; padding < 16; padding += 1) {
      const { writer } = open();
      const long = encodeDraft(
        {
          eventType: 'ActionDenied',
          lineage: NO_LINEAGE,
          actor: 'gateway',
          payload: { list, padding: 'x'.repeat(padding) },
        },
        NOON_MS,
      );
      expect(writer.append(long, 1).ok).toBe(true);
      const head = writer.head();
      writer.close();
      const { notices, writer: again } = open();
      expect({ notices, head: again.head(), id: head.id }).toEqual({ notices: [], head, id: 1 });
      again.close();
      rmSync(join(directory, FIRST));
    }
  });

  test("a second writer in the directory is refused with the lock's holder", () => {
    const { writer } = open();
    const refused = openAuditWriter({ directory, fsync: 'never', nowMs: () => NOON_MS });
    expect(refused).toEqual({ ok: false, fault: { kind: 'locked', holder: String(process.pid) } });
    writer.close();
    const again = open().writer;
    expect(openAuditWriter({ directory, fsync: 'never', nowMs: () => NOON_MS })).toEqual(refused);
    again.close();
  });

  test('a batch with a wrong count is a bug and leaves the log unchanged', () => {
    const { writer } = open();
    expect(() => writer.append(`${body(1)}\n${body(2)}`, 1)).toThrow('broken invariant');
    expect(() => writer.append(body(1), 2)).toThrow('broken invariant');
    write(writer, 1, 1);
    writer.close();
  });

  test('a segment started by a clock far ahead is followed by a new one', () => {
    let nowMs = NOON_MS + 10 * 365 * 86_400_000;
    const { writer } = open({ nowMs: () => nowMs, segmentAgeMs: 86_400_000 });
    write(writer, 1, 2);
    nowMs = NOON_MS;
    write(writer, 3, 1);
    nowMs += 3_600_000;
    write(writer, 4, 1);
    writer.close();
    expect(readdirSync(directory).filter((name) => name.endsWith('.ndjson'))).toEqual([
      FIRST,
      '0000000000000003.ndjson',
    ]);
  });
});
