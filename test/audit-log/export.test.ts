import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { csvCell } from '../../src/audit-log/csv.ts';
import { AuditReader } from '../../src/audit-log/reader.ts';
import type { AuditEntry, AuditFilter } from '../../src/core/audit/audit.ts';
import { append, copies, freshDirectory, ids, ofOrg, openWriter, queried, SEGMENT_ONE } from './log.ts';

describe('export', () => {
  async function exported(reader: AuditReader, filter: AuditFilter, format: 'ndjson' | 'csv'): Promise<string> {
    let text = '';
    for await (const piece of reader.export(filter, format)) text += piece;
    return text;
  }

  /** The same lines, the last one first. */
  const reversed = (lines: string): string => `${lines.trimEnd().split('\n').reverse().join('\n')}\n`;

  test("an NDJSON export is the log's lines byte for byte, newest first", async () => {
    const directory = freshDirectory();
    const writer = openWriter(directory, { segmentBytes: 50_000 });
    for (let nth = 0; nth < 5; nth += 1) append(writer, copies(150, ofOrg(nth % 2 === 0 ? 'größe' : 'b')));
    writer.close();
    const log = readdirSync(directory)
      .filter((name) => name.endsWith('.ndjson'))
      .sort()
      .map((name) => readFileSync(join(directory, name), 'utf8'))
      .join('');
    const reader = new AuditReader(directory);
    expect(await exported(reader, {}, 'ndjson')).toBe(reversed(log));
    const one = await exported(reader, { orgId: 'b' }, 'ndjson');
    expect(
      one
        .trimEnd()
        .split('\n')
        .map((line) => (JSON.parse(line) as AuditEntry).id),
    ).toEqual([
      ...Array.from({ length: 150 }, (_, index) => 600 - index),
      ...Array.from({ length: 150 }, (_, index) => 300 - index),
    ]);
  });

  test('a CSV export quotes what needs it and disarms spreadsheet formulas', async () => {
    const directory = freshDirectory();
    const writer = openWriter(directory);
    append(writer, [
      {
        lineage: { orgId: 'acme', teamId: '=cmd|x', agentId: 'a,b' },
        decision: 'deny',
        reason: 'say "no"\nplease',
        payload: { n: 1 },
      },
    ]);
    writer.close();
    const csv = await exported(new AuditReader(directory), {}, 'csv');
    const hash = /[0-9a-f]{64}(?=\r\n$)/.exec(csv)?.[0] ?? '';
    expect(csv).toBe(
      'id,timestamp,event_type,org_id,team_id,agent_id,op_id,decision,reason,policy,rule_id,cause,actor,payload,prev_hash,hash\r\n' +
        `1,2026-03-01T12:00:00.000Z,ActionAllowed,acme,"'=cmd|x","a,b",,deny,"say ""no""\nplease",,,,gateway,"{""n"":1}",${'0'.repeat(64)},${hash}\r\n`,
    );
    expect(csvCell('\u001b[2J\u009b2J\u202egpj\u007f')).toBe('\\u001b[2J\\u009b2J\\u202egpj\\u007f');
    expect(['+1', '-1', '@x', '\tx', '\rx', 'plain', null, ''].map(csvCell)).toEqual([
      '"\'+1"',
      '"\'-1"',
      '"\'@x"',
      '"\'\tx"',
      '"\'\rx"',
      'plain',
      '',
      '',
    ]);
  });

  test('a slow export of a large log holds a few chunks in memory, and ends', async () => {
    const directory = freshDirectory();
    const writer = openWriter(directory, { segmentBytes: 8_000_000 });
    const batch = copies(1000, { ...ofOrg('acme'), reason: 'x'.repeat(600) });
    for (let nth = 0; nth < 60; nth += 1) append(writer, batch);
    const reader = new AuditReader(directory);
    while (await reader.refresh());
    const startBytes = process.memoryUsage().rss;
    let [highest, lines] = [0, 0];
    for await (const piece of reader.export({}, 'ndjson')) {
      lines += piece.split('\n').length - 1;
      highest = Math.max(highest, process.memoryUsage().rss - startBytes);
      if (lines % 50 === 0) append(writer, copies(1));
    }
    writer.close();
    expect(lines).toBe(60_000);
    expect(highest).toBeLessThan(40 * 1024 * 1024); // of 60 MB
  });

  test('a damaged line is left out of pages and stays unchanged in exports', async () => {
    const directory = freshDirectory();
    const writer = openWriter(directory);
    append(writer, [{ payload: { n: 1 } }, { payload: { n: 2 } }, { payload: { n: 3 } }]);
    writer.close();
    const path = join(directory, SEGMENT_ONE);
    writeFileSync(path, readFileSync(path, 'utf8').replace('{"n":2}', '{"n":ü}'));
    const damaged = readFileSync(path, 'utf8').split('\n')[1] ?? '';
    const reader = new AuditReader(directory);
    expect(await ids(reader, {})).toEqual([3, 1]);
    const page = await queried(reader, {}, { perPage: 1 });
    const rest = await queried(reader, {}, { perPage: 1, cursor: (page.ok ? page.value.next : undefined) ?? '' });
    expect(rest.ok && rest.value.items.map(({ id }) => id)).toEqual([1]);
    expect(await exported(reader, {}, 'ndjson')).toBe(reversed(readFileSync(path, 'utf8')));
    const csv = (await exported(reader, {}, 'csv')).split('\r\n');
    expect(csv[2]).toBe(`,,,,,,,,,,,,,"${damaged.replaceAll('"', '""')}",,`);
  });
});
