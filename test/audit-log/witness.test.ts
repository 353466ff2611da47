import { createPublicKey } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createCheckpointer, loadCheckpointKey, writeAnchor } from '../../src/audit-log/checkpoint.ts';
import { verifyAuditLog } from '../../src/audit-log/verify.ts';
import { keptStatements, statementsIn } from '../../src/audit-log/witness/statement.ts';
import { isWitnessUrl, targetOf } from '../../src/audit-log/witness/target.ts';
import { Witnesses } from '../../src/audit-log/witness/witnesses.ts';
import type { WitnessStatement } from '../../src/core/audit/witness.ts';
import { eventually } from '../support/eventually.ts';
import { append, freshDirectory, NOON_MS, openWriter } from './log.ts';

const many = (count: number, reason: string) => Array.from({ length: count }, () => ({ reason }));

/** 30 entries with checkpoints at 10, 20 and 30, and what a witness has kept of them. */
function witnessedLog() {
  const base = freshDirectory();
  const directory = join(base, 'audit');
  const key = loadCheckpointKey(join(base, 'audit-checkpoint.pem'));
  const writer = openWriter(directory);
  const checkpointer = createCheckpointer({ directory, key, nowMs: () => NOON_MS });
  const witnessed: WitnessStatement[] = [];
  for (const reason of ['quiet', 'EVIL', 'quiet']) {
    append(writer, many(10, reason));
    witnessed.push({ ...checkpointer.record(writer.head())!, first_id: 1 });
  }
  writer.close();
  return { directory, key, witnessed, options: { checkpointKey: createPublicKey(key), witnessed } };
}

/** The log that somebody makes who has the key: these entries, a chain and a checkpoint as they should be. */
function rebuild(directory: string, key: ReturnType<typeof loadCheckpointKey>, reasons: readonly string[]): void {
  rmSync(directory, { recursive: true });
  const writer = openWriter(directory);
  for (const reason of reasons) append(writer, many(10, reason));
  createCheckpointer({ directory, key, nowMs: () => NOON_MS }).record(writer.head());
  writer.close();
}

const STATEMENT: WitnessStatement = {
  id: 7,
  hash: 'a'.repeat(64),
  first_id: 1,
  timestamp: '2026-03-01T12:00:00.000Z',
  signature: 'signature',
};

const openWitnesses = (timeoutMs: number, ...urls: readonly string[]) => {
  const notes: string[] = [];
  const witnesses = new Witnesses({
    targets: urls.map((url) => targetOf(url, 'secret')),
    note: (level, message, { witness }: { witness?: string }) => void notes.push(`${level} ${message}: ${witness}`),
    timeoutMs,
    retryMs: 10,
  });
  onTestFinished(() => witnesses.close(0));
  return { witnesses, notes };
};

describe('witness', () => {
  test('vouches for a log that is as it saw it, and for its beginning', async () => {
    const { directory, options } = witnessedLog();
    expect(await verifyAuditLog(directory, options)).toMatchObject({
      ok: true,
      entries: 30,
      witnessedUpTo: 30,
      witnessedAt: '2026-03-01T12:00:00.000Z',
      headAt: '2026-03-01T12:00:00.000Z',
    });
  });

  test('reveals a cut tail whose checkpoints were cut too', async () => {
    const { directory, key, options } = witnessedLog();
    rebuild(directory, key, ['quiet']);
    expect(await verifyAuditLog(directory, { checkpointKey: options.checkpointKey })).toMatchObject({ ok: true });
    expect(await verifyAuditLog(directory, options)).toMatchObject({
      ok: false,
      firstBroken: {
        id: 11,
        problem: 'cut',
        detail: 'the witness from 2026-03-01T12:00:00.000Z covers entry 30, but the log ends at 10',
      },
    });
  });

  test('reveals a log that was rewritten and signed with its own key', async () => {
    const { directory, key, options } = witnessedLog();
    rebuild(directory, key, ['quiet', 'good', 'quiet', 'quiet']);
    expect(await verifyAuditLog(directory, { checkpointKey: options.checkpointKey })).toMatchObject({ ok: true });
    expect(await verifyAuditLog(directory, options)).toMatchObject({
      ok: false,
      firstBroken: { id: 20, problem: 'rewritten' },
    });
    // Another key, made for the purpose, helps as little.
    const other = loadCheckpointKey(join(freshDirectory(), 'other.pem'));
    rebuild(directory, other, ['quiet', 'good', 'quiet']);
    expect(
      await verifyAuditLog(directory, { checkpointKey: createPublicKey(other), witnessed: options.witnessed }),
    ).toMatchObject({ ok: false, firstBroken: { id: 20, problem: 'rewritten' } });
  });

  test('reveals a beginning that was cut off and signed as deleted by retention', async () => {
    const { directory, key, options } = witnessedLog();
    const [segment = ''] = readdirSync(directory).filter((name) => /^\d{16}/.test(name));
    const lines = readFileSync(join(directory, segment), 'utf8').trimEnd().split('\n').slice(20);
    rmSync(join(directory, segment));
    writeFileSync(join(directory, '0000000000000021.ndjson'), `${lines.join('\n')}\n`);
    const { prev_hash: prevHash } = JSON.parse(lines[0]!) as { prev_hash: string };
    writeAnchor({ directory, firstId: 21, prevHash, key, nowMs: NOON_MS });
    expect(await verifyAuditLog(directory, { checkpointKey: options.checkpointKey })).toMatchObject({ ok: true });
    expect(await verifyAuditLog(directory, options)).toMatchObject({
      ok: false,
      firstBroken: {
        id: 1,
        problem: 'cut',
        detail: 'the log begins at 21, but the witness has seen it begin at 1 at the latest',
      },
    });
    // Once retention has told the witness, it is as it should be.
    const statements = [...options.witnessed, { ...options.witnessed[2]!, first_id: 21 }];
    expect(await verifyAuditLog(directory, { ...options, witnessed: statements })).toMatchObject({
      ok: true,
      entries: 10,
    });
  });

  test('names a statement that is forged or about another log, and believes it', async () => {
    const { directory, options, witnessed } = witnessedLog();
    const doubt =
      '; this statement is not signed with the key: it is forged or about another log, or the key is not that of this log';
    for (const [forged, detail] of [
      [{ id: 40 }, 'the witness from 2026-03-01T12:00:00.000Z covers entry 40, but the log ends at 30'],
      [{ id: 25, hash: 'f'.repeat(64) }, /^the witness .* has a different hash; the chain was rebuilt .* or earlier/],
    ] as const) {
      const statements = [...witnessed, { ...witnessed[2]!, ...forged }];
      const report = await verifyAuditLog(directory, { ...options, witnessed: statements });
      const broken = report.ok ? undefined : report.firstBroken;
      expect(broken?.detail).toMatch(detail);
      expect(broken?.detail.endsWith(doubt)).toBe(true);
    }
  });

  test('can be another gateway: its log shows the cut, and the author of each statement', async () => {
    const { directory, key, options, witnessed } = witnessedLog();
    const other = join(freshDirectory(), 'other', 'audit');
    const writer = openWriter(other, { segmentBytes: 1000 });
    for (const payload of witnessed) {
      append(writer, [{ eventType: 'CheckpointWitnessed', actor: 'key:branch', payload }]);
      // Entries that others write into that log are no statements, whatever they look like.
      append(writer, [{ eventType: 'ActionDenied', actor: 'key:branch', payload: { ...payload, id: 999 } }]);
      append(writer, [{ reason: JSON.stringify({ ...payload, id: 999 }), payload: { attributes: payload } }]);
    }
    writer.close();
    const statements: unknown[] = [];
    for await (const each of keptStatements(join(other, '..'))) statements.push(each);
    expect(statements).toEqual(witnessed.map((each) => ({ ...each, actor: 'key:branch' })));
    rebuild(directory, key, ['quiet']);
    expect(await verifyAuditLog(directory, { ...options, witnessed: statements as typeof witnessed })).toMatchObject({
      ok: false,
      firstBroken: { id: 11, problem: 'cut' },
    });
  });

  test('detects two logs by two hashes of one entry', async () => {
    const { directory, options, witnessed } = witnessedLog();
    const both = [...witnessed, { ...witnessed[1]!, hash: 'b'.repeat(64) }];
    expect(await verifyAuditLog(directory, { ...options, witnessed: both })).toMatchObject({
      ok: false,
      firstBroken: { id: 20, problem: 'rewritten' },
    });
  });

  test('is read from its file, from lines of syslog, and from the log of another gateway', () => {
    const line = JSON.stringify(STATEMENT);
    const { first_id: _, ...checkpoint } = STATEMENT;
    const entry = { id: 900, event_type: 'CheckpointWitnessed', payload: STATEMENT, prev_hash: 'x', hash: 'y' };
    expect(
      statementsIn(
        [
          line,
          `<85>1 2026-03-01T12:00:00Z host svc-gateway 1 audit-checkpoint - ${line}`,
          `Mar  1 12:00:00 host {odd} svc-gateway: ${line}`,
          JSON.stringify(entry),
          JSON.stringify(checkpoint),
          'nothing {',
          '{"id":8,"hash":"short","timestamp":"","signature":""}',
          '',
        ].join('\n'),
      ),
    ).toEqual([STATEMENT, STATEMENT, STATEMENT, STATEMENT, { ...STATEMENT, first_id: undefined }]);
  });

  test('is reached over a file, HTTP and syslog', async () => {
    const folder = freshDirectory();
    const posts: (string | undefined)[] = [];
    const http = createHttpServer(async (request, response) => {
      posts.push(request.headers.authorization, await text(request));
      response.writeHead(204).end();
    }).listen(0, '127.0.0.1');
    const udp = createSocket('udp4').bind(0, '127.0.0.1');
    const datagrams: string[] = [];
    udp.on('message', (bytes) => datagrams.push(bytes.toString()));
    const streams: string[] = [];
    const tcp = createServer(async (socket) => streams.push(await text(socket))).listen(0, '127.0.0.1');
    onTestFinished(() => {
      http.close();
      udp.close();
      tcp.close();
    });
    await Promise.all([once(http, 'listening'), once(udp, 'listening'), once(tcp, 'listening')]);
    const portOf = (server: { address(): unknown }): number => (server.address() as AddressInfo).port;
    const { witnesses, notes } = openWitnesses(
      20_000,
      pathToFileURL(join(folder, 'witness.ndjson')).href,
      `http://127.0.0.1:${portOf(http)}/audit`,
      `syslog://127.0.0.1:${portOf(udp)}`,
      `syslog+tcp://127.0.0.1:${portOf(tcp)}`,
    );
    witnesses.send(STATEMENT);
    await witnesses.close(20_000);
    await eventually(() => expect(datagrams).toHaveLength(1));
    expect(statementsIn(readFileSync(join(folder, 'witness.ndjson'), 'utf8'))).toEqual([STATEMENT]);
    expect(posts).toEqual(['Bearer secret', JSON.stringify(STATEMENT)]);
    expect(statementsIn(datagrams[0]!)).toEqual([STATEMENT]);
    const [, length, line] = /^(\d+) (.*)$/s.exec(streams[0]!)!;
    expect({ length: Number(length), found: statementsIn(line!) }).toEqual({
      length: Buffer.byteLength(line!),
      found: [STATEMENT],
    });
    expect(notes).toEqual([]);
    expect(witnesses.status.map(({ isReachable, witnessedId }) => [isReachable, witnessedId])).toEqual(
      Array(4).fill([true, 7]),
    );
  });

  test('is logged once when it fails or hangs, and gets the newest when it is back', async () => {
    let status = 500;
    const got: string[] = [];
    const http = createHttpServer(async (request, response) => {
      const body = await text(request);
      if (status === 0) return;
      if (status === 204) got.push(body);
      response.writeHead(status).end();
    }).listen(0, '127.0.0.1');
    onTestFinished(() => {
      http.closeAllConnections();
      http.close();
    });
    await once(http, 'listening');
    const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/`;
    const file = join(freshDirectory(), 'witness.ndjson');
    const { witnesses, notes } = openWitnesses(1_000, url, pathToFileURL(file).href);
    witnesses.send(STATEMENT);
    await eventually(() => expect(witnesses.status[0]!.failures).toBeGreaterThan(1));
    expect(witnesses.isAnyAway).toBe(true);
    status = 0;
    const { failures } = witnesses.status[0]!;
    await eventually(() => expect(witnesses.status[0]!.failures).toBeGreaterThan(failures));
    for (let id = 8; id < 12; id += 1) witnesses.send({ ...STATEMENT, id });
    status = 204;
    await eventually(() => expect(witnesses.isAnyAway).toBe(false));
    await eventually(() => expect(got.at(-1)).toBe(JSON.stringify({ ...STATEMENT, id: 11 })));
    await eventually(() => expect(statementsIn(readFileSync(file, 'utf8')).at(-1)!.id).toBe(11));
    expect(notes.filter((note) => note.endsWith(url))).toEqual([
      `warn an audit witness does not take checkpoints; they are sent again until it does: ${url}`,
      `info an audit witness takes checkpoints again: ${url}`,
    ]);
  });

  test.each([
    ['file:///mnt/other/witness.ndjson', true],
    ['https://witness.example/audit?log=a', true],
    ['syslog://[::1]:514', true],
    ['syslog+tls://logs.example', true],
    ['https://user:secret@witness.example/', false],
    ['file:witness', true],
    ['ftp://witness.example/', false],
    ['witness.ndjson', false],
  ])('%s is one: %s', (url, isOne) => {
    expect(isWitnessUrl(url)).toBe(isOne);
  });

  test('copied from the checkpoints of the log is as good', async () => {
    const { directory, key, options } = witnessedLog();
    const kept = join(freshDirectory(), 'kept.ndjson');
    cpSync(join(directory, 'checkpoints.ndjson'), kept);
    rebuild(directory, key, ['quiet', 'good', 'quiet']);
    expect(
      await verifyAuditLog(directory, { ...options, witnessed: statementsIn(readFileSync(kept, 'utf8')) }),
    ).toMatchObject({ ok: false, firstBroken: { problem: 'rewritten' } });
  });
});
