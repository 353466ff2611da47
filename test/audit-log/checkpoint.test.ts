import { createPublicKey, verify } from 'node:crypto';
import { appendFileSync, readFileSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createCheckpointer, loadCheckpointKey, readCheckpoints, writeAnchor } from '../../src/audit-log/checkpoint.ts';
import { verifyAuditLog } from '../../src/audit-log/verify.ts';
import { append, checkpointed, freshDirectory, NOON_MS, numbered, openWriter, shrunk, tenEntries } from './log.ts';

describe('checkpoints', () => {
  test.each([
    ['a holder of the key', true],
    ['others', false],
  ])('a signed checkpoint reveals to %s a cut tail and a rebuilt chain', async (_who, hasKey) => {
    const { directory, publicKey, head } = checkpointed();
    const options = { checkpointKey: hasKey ? publicKey : undefined };
    expect(await verifyAuditLog(directory, options)).toEqual({
      ok: true,
      entries: 30,
      firstId: 1,
      head,
      checkpoints: 2,
      checkpointedUpTo: 20,
      checkpointedAt: '2026-03-01T12:00:00.000Z',
      witnessedUpTo: 0,
      witnessedAt: undefined,
      headAt: '2026-03-01T12:00:00.000Z',
      tornBytes: 0,
      kept: 0,
    });
    unlinkSync(join(directory, '0000000000000021.ndjson'));
    expect(await verifyAuditLog(directory, options)).toMatchObject({ ok: true, entries: 20 });
    const second = join(directory, '0000000000000011.ndjson');
    const lines = readFileSync(second, 'utf8').trimEnd().split('\n');
    writeFileSync(second, `${lines.slice(0, 7).join('\n')}\n`);
    expect(await verifyAuditLog(directory, options)).toMatchObject({
      ok: false,
      firstBroken: {
        id: 18,
        segment: '0000000000000011.ndjson',
        line: 8,
        problem: 'cut',
        detail: 'the checkpoint from 2026-03-01T12:00:00.000Z covers entry 20, but the log ends at 17',
      },
    });
    const forger = openWriter(directory, { segmentBytes: 3000 });
    append(forger, numbered(5));
    forger.close();
    expect(await verifyAuditLog(directory, options)).toMatchObject({
      ok: false,
      firstBroken: { id: 20, problem: 'rewritten' },
    });
  });

  test('a checkpoint of the first entry vouches for it, a half-written one for nothing', async () => {
    const directory = freshDirectory();
    const key = loadCheckpointKey(join(freshDirectory(), 'key.pem'));
    const writer = openWriter(directory);
    append(writer, numbered(1));
    createCheckpointer({ directory, key, nowMs: () => NOON_MS }).record(writer.head());
    append(writer, numbered(1));
    writer.close();
    appendFileSync(join(directory, 'checkpoints.ndjson'), '{"id":2,"ha');
    expect(await verifyAuditLog(directory, { checkpointKey: createPublicKey(key) })).toMatchObject({
      ok: true,
      entries: 2,
      checkpoints: 1,
      checkpointedUpTo: 1,
    });
  });

  test('a checkpoint not signed by the key is a forgery, and retention keeps it', async () => {
    const { directory, key, publicKey } = checkpointed();
    const path = join(directory, 'checkpoints.ndjson');
    const text = readFileSync(path, 'utf8');
    expect(text.split('\n')).toHaveLength(3);
    writeFileSync(path, text.replace('"id":20', '"id":21'));
    expect(await verifyAuditLog(directory, { checkpointKey: publicKey })).toMatchObject({
      ok: false,
      firstBroken: { segment: 'checkpoints.ndjson', line: 2, problem: 'forged' },
    });
    for (const line of ['null', '{}', text.split('\n')[0]?.replace('{', '{"note":"unsigned",'), 'nonsense']) {
      writeFileSync(path, `${line}\n${text}`);
      expect(await verifyAuditLog(directory)).toMatchObject({ ok: false, firstBroken: { line: 1, problem: 'forged' } });
    }
    expect(await shrunk(directory, 1, key)).toHaveLength(2);
    expect(await verifyAuditLog(directory)).toMatchObject({ ok: false, firstBroken: { line: 1, problem: 'forged' } });
  });

  test('a half-written checkpoint is replaced; the key is created once, owner-only', () => {
    const { base, directory, key } = checkpointed();
    expect(statSync(join(base, 'audit-checkpoint.pem')).mode & 0o777).toBe(0o600);
    const again = loadCheckpointKey(join(base, 'audit-checkpoint.pem'));
    expect(again.equals(key)).toBe(true);
    appendFileSync(join(directory, 'checkpoints.ndjson'), '{"id":30,"ha');
    createCheckpointer({ directory, key, nowMs: () => NOON_MS }).record({ id: 30, hash: 'a'.repeat(64) });
    expect(readCheckpoints(directory).map(({ checkpoint }) => checkpoint?.id)).toEqual([10, 20, 30]);
  });

  test('a damaged line of checkpoints does not affect the next one', () => {
    const { directory, key } = checkpointed();
    const path = join(directory, 'checkpoints.ndjson');
    const bytes = readFileSync(path);
    bytes.fill(0xff, 10, 20); // no text in UTF-8
    writeFileSync(path, bytes);
    createCheckpointer({ directory, key, nowMs: () => NOON_MS }).record({ id: 30, hash: 'a'.repeat(64) });
    expect(readCheckpoints(directory).map(({ checkpoint }) => checkpoint?.id)).toEqual([undefined, 20, 30]);
  });

  test('a restart does not sign the last signed head again, nor an empty log', () => {
    const { directory, key } = checkpointed();
    const [, last] = readCheckpoints(directory);
    const again = createCheckpointer({ directory, key, nowMs: () => NOON_MS });
    again.record({ id: 20, hash: last?.checkpoint?.hash ?? '' });
    again.record({ id: 0, hash: '0'.repeat(64) });
    expect(readCheckpoints(directory).map(({ checkpoint }) => checkpoint?.id)).toEqual([10, 20]);
  });

  test('a checkpoint and the anchor verify with the public key as documented', async () => {
    const { directory, head, lines } = tenEntries();
    const key = loadCheckpointKey(join(freshDirectory(), 'key.pem'));
    createCheckpointer({ directory, key, nowMs: () => NOON_MS }).record(head);
    const { prev_hash: prevHash } = JSON.parse(lines[4] ?? '') as { prev_hash: string };
    writeAnchor({ directory, firstId: 5, prevHash, key, nowMs: NOON_MS });
    const signatureOf = (name: string): Buffer =>
      Buffer.from(
        (JSON.parse(readFileSync(join(directory, name), 'utf8')) as { signature: string }).signature,
        'base64url',
      );
    const isSigned = (text: string, name: string) =>
      verify(null, Buffer.from(text), createPublicKey(key), signatureOf(name));
    expect(isSigned(`svc-audit-checkpoint\n10\n${head.hash}\n2026-03-01T12:00:00.000Z`, 'checkpoints.ndjson')).toBe(
      true,
    );
    expect(isSigned(`svc-audit-anchor\n5\n${prevHash}\n2026-03-01T12:00:00.000Z`, 'anchor.json')).toBe(true);
  });
});
