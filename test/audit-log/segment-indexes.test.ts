import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { AuditReader } from '../../src/audit-log/reader.ts';
import { SegmentIndexes, withSegment } from '../../src/audit-log/segment-indexes.ts';
import { listSegments } from '../../src/audit-log/segments.ts';
import { append, freshDirectory, openWriter, queried } from './log.ts';

const indexesIn = (directory: string): string[] =>
  readdirSync(directory)
    .filter((name) => name.endsWith('.idx'))
    .sort();

/** The directory of a log of so many segments of one entry each, closed. */
function logOfSegments(count: number): string {
  const directory = freshDirectory();
  const writer = openWriter(directory, { segmentBytes: 1 });
  for (let nth = 0; nth < count; nth += 1) append(writer, [{}]);
  writer.close();
  return directory;
}

describe('segment indexes', () => {
  test('an index write that fails is an error, and the next query succeeds', async () => {
    const directory = logOfSegments(2);
    const reader = new AuditReader(directory);
    const inTheWay = join(directory, `0000000000000001.idx.${process.pid}.tmp`);
    mkdirSync(inTheWay);
    await expect(queried(reader, {}, { perPage: 10 })).rejects.toThrow('EISDIR');
    rmdirSync(inTheWay);
    expect(await queried(reader, {}, { perPage: 10 })).toMatchObject({
      ok: true,
      value: { items: [{ id: 2 }, { id: 1 }], next: undefined },
    });
  });

  test('a segment that lost its end gets no index file, which would be wrong', async () => {
    const directory = logOfSegments(3);
    const torn = join(directory, '0000000000000002.ndjson');
    truncateSync(torn, statSync(torn).size - 20);
    expect(await queried(new AuditReader(directory), {}, { perPage: 10 })).toMatchObject({
      ok: true,
      value: { items: [{ id: 3 }, { id: 1 }] },
    });
    expect(indexesIn(directory)).toEqual(['0000000000000001.idx']);
  });

  test('a segment of long entries is indexed to its end', async () => {
    const directory = freshDirectory();
    const writer = openWriter(directory, { segmentBytes: 1_000_000 });
    // The first 128 entries, which one row of the index covers, are more than is read at once.
    for (let nth = 0; nth < 2; nth += 1)
      append(
        writer,
        Array.from({ length: 130 }, () => ({ payload: { text: 'x'.repeat(8_000) } })),
      );
    writer.close();
    await new AuditReader(directory).refresh();
    expect(indexesIn(directory)).toEqual(['0000000000000001.idx']);
  });

  test('keeps the 512 last used indexes in memory and reads the others from files', async () => {
    const directory = logOfSegments(515);
    const reader = new AuditReader(directory, { maxStepsPerPage: 10_000, maxMsPerPage: 60_000 });
    const cursorOf = (id: number): string => Buffer.from(`before:${id}`).toString('base64url');
    // From the newest to the oldest: of the 514 that are sealed, 514 and 513 are the first to go.
    expect(await queried(reader, { orgId: 'nobody' }, { perPage: 1 })).toMatchObject({
      ok: true,
      value: { next: undefined },
    });
    expect(indexesIn(directory)).toHaveLength(514);
    for (const name of indexesIn(directory)) rmSync(join(directory, name));
    await queried(reader, { orgId: 'nobody' }, { perPage: 1, cursor: cursorOf(513) });
    expect(indexesIn(directory)).toEqual([]);
    await queried(reader, { orgId: 'nobody' }, { perPage: 1, cursor: cursorOf(515) });
    expect(indexesIn(directory)).toContain('0000000000000514.idx');
  });

  test('an append undone during indexing leaves nothing in the index', async () => {
    const directory = freshDirectory();
    const path = join(directory, '0000000000000001.ndjson');
    const ofOrg = (orgId: string, count: number) =>
      Array.from({ length: count }, () => ({ lineage: { orgId, teamId: null, agentId: null } }));
    const log = (orgId: string): Buffer => {
      rmSync(path, { force: true });
      const writer = openWriter(directory);
      append(writer, [...ofOrg('acme', 300), ...ofOrg(orgId, 3_000)]);
      writer.close();
      return readFileSync(path);
    };
    const afterwards = log('initech');
    log('globex');
    const reader = new AuditReader(directory);
    const found = queried(reader, { orgId: 'acme' }, { perPage: 1_000 });
    // By now one stretch of several is indexed.
    await new Promise<void>((resolve) => process.nextTick(resolve));
    writeFileSync(path, afterwards);
    expect(await found).toMatchObject({ ok: true });
    const initech = await queried(reader, { orgId: 'initech' }, { perPage: 10_000 });
    expect(initech.ok && initech.value.items.length).toBe(3_000);
  });

  test('an index that cannot be opened, as one of another user, is rebuilt', async () => {
    const directory = logOfSegments(2);
    const index = join(directory, '0000000000000001.idx');
    symlinkSync(index, index); // the system opens it for nobody, not even root
    expect(await queried(new AuditReader(directory), {}, { perPage: 10 })).toMatchObject({
      ok: true,
      value: { items: [{ id: 2 }, { id: 1 }], next: undefined },
    });
    expect(lstatSync(index).isFile()).toBe(true);
  });

  test('a segment deleted by retention while it is indexed leaves no index behind', async () => {
    const directory = logOfSegments(3);
    const [segment] = listSegments(directory);
    await withSegment(segment!, async (fd) => {
      rmSync(segment!.path);
      expect((await new SegmentIndexes().of(segment!, fd, false)).index.chunkCount).toBe(1);
    });
    expect(indexesIn(directory)).toEqual([]);
  });
});
