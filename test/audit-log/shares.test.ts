/** A log with a limit: whoever fills it loses its own oldest entries, and nobody else loses any. */
import { createPublicKey } from 'node:crypto';
import {
  appendFileSync,
  cpSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Anchor, loadCheckpointKey, readAnchor, writeAnchor } from '../../src/audit-log/checkpoint.ts';
import { AuditReader } from '../../src/audit-log/reader.ts';
import { applyRetention } from '../../src/audit-log/retention.ts';
import { shareOf } from '../../src/audit-log/shares.ts';
import { sizeOfLog } from '../../src/audit-log/shrink.ts';
import { verifyAuditLog } from '../../src/audit-log/verify.ts';
import type { AuditDraft } from '../../src/core/audit/audit.ts';
import { append, freshDirectory, ids, NOON_MS, ofOrg, openWriter, segmentsOf, shrunk } from './log.ts';

const LIMIT = 30_000;

/** Entries of some 1,000 bytes, three to a segment. */
const flood = (orgId: string | null, count: number, more: Partial<AuditDraft> = {}): Partial<AuditDraft>[] =>
  Array.from({ length: count }, () => ({ ...ofOrg(orgId), reason: 'x'.repeat(600), ...more }));

function scene() {
  const base = freshDirectory();
  const directory = join(base, 'audit');
  const key = loadCheckpointKey(join(base, 'key.pem'));
  const writer = openWriter(directory, { segmentBytes: 3_000 });
  const write = (...drafts: Partial<AuditDraft>[]): void => {
    for (const draft of drafts) append(writer, [draft]);
  };
  const verified = () => verifyAuditLog(directory, { checkpointKey: createPublicKey(key) });
  const found = (orgId: string) => ids(new AuditReader(directory), { orgId });
  return { directory, key, writer, write, verified, found };
}

describe('the share of an org', () => {
  test.each([
    ['is everything for one alone', { a: 500 }, 300, 300],
    ['is what the small ones leave, equally', { a: 500, b: 10, c: 500 }, 300, 145],
    ['has no bound where all fit', { a: 100, b: 200 }, 300, Infinity],
    ['is equal where all have more', { a: 500, b: 400 }, 300, 150],
  ])('%s', (_, usage, budget, share) => {
    expect(shareOf(new Map(Object.entries(usage)), budget)).toBe(share);
  });
});

describe('a log beyond its limit', () => {
  test('keeps the evidence of one org however much another one floods', async () => {
    const { directory, key, write, verified, found } = scene();
    write({ ...ofOrg('beta'), eventType: 'ActionDenied', decision: 'deny', reason: 'rm -rf / EVIDENCE' });
    for (let nth = 0; nth < 10; nth += 1) {
      write(...flood('acme', 30));
      await shrunk(directory, LIMIT, key);
      expect(await found('beta')).toEqual([1]);
    }
    expect(sizeOfLog(directory)).toBeLessThanOrEqual(LIMIT);
    const acme = await found('acme');
    expect(acme.length).toBeGreaterThan(20);
    // Its newest, without a gap.
    expect(acme).toEqual(Array.from(acme, (_, n) => 301 - n));
    expect(await verified()).toMatchObject({ ok: true, kept: 1, head: { id: 301 } });
    const [name] = readdirSync(join(directory, 'kept')).filter((file) => file.endsWith('.ndjson'));
    expect(readFileSync(join(directory, 'kept', name!), 'utf8')).toContain('rm -rf / EVIDENCE');
  });

  test('takes from each org that has more than its share, and not from the others', async () => {
    const { directory, key, write, verified, found } = scene();
    for (let nth = 0; nth < 20; nth += 1)
      write(...flood('acme', 3), ...flood('gamma', 2), ...(nth % 5 === 0 ? flood('beta', 1) : []));
    await shrunk(directory, LIMIT, key);
    const [acme, gamma, beta] = [await found('acme'), await found('gamma'), await found('beta')];
    expect(beta).toHaveLength(4);
    expect(Math.abs(acme.length - gamma.length)).toBeLessThan(6);
    expect(acme.length + gamma.length).toBeGreaterThan(20);
    expect(sizeOfLog(directory)).toBeLessThanOrEqual(LIMIT);
    expect(await verified()).toMatchObject({ ok: true });
  });

  test('takes from what it has kept when more orgs come', async () => {
    const { directory, key, write, verified, found } = scene();
    write(...flood('beta', 12));
    for (const org of ['acme', 'gamma', 'delta', 'omega']) {
      write(...flood(org, 30));
      await shrunk(directory, LIMIT, key);
      expect(sizeOfLog(directory)).toBeLessThanOrEqual(LIMIT);
    }
    const beta = await found('beta');
    expect(beta.length).toBeGreaterThan(2);
    expect(beta.length).toBeLessThan(12);
    expect(beta[0]).toBe(12);
    expect(await verified()).toMatchObject({ ok: true });
  });

  test('gives one org alone all of it, and copies nothing', async () => {
    const { directory, key, write, verified } = scene();
    write(...flood('acme', 60));
    await shrunk(directory, LIMIT, key);
    expect(sizeOfLog(directory)).toBeGreaterThan(LIMIT - 4_000);
    expect(readdirSync(directory)).not.toContain('kept');
    expect(readAnchor(directory)).not.toHaveProperty('kept');
    expect(await verified()).toMatchObject({ ok: true, kept: 0 });
  });

  test('keeps what operators did, and nothing of callers that are not identified', async () => {
    const { directory, key, write } = scene();
    write({ eventType: 'PolicyReloaded', actor: 'gateway' }, { ...ofOrg(null), actor: 'anonymous', decision: 'deny' });
    write(...flood('acme', 60));
    await shrunk(directory, LIMIT, key);
    expect((await ids(new AuditReader(directory), {})).at(-1)).toBe(1);
    expect(await ids(new AuditReader(directory), { actor: 'anonymous' })).toEqual([]);
  });

  test('pages through kept entries, and exports them', async () => {
    const { directory, key, write } = scene();
    for (let nth = 0; nth < 10; nth += 1) write(...flood('beta', 1), ...flood('acme', 9));
    await shrunk(directory, LIMIT, key);
    const all = await ids(new AuditReader(directory), {});
    expect(await ids(new AuditReader(directory), {}, 3)).toEqual(all);
    expect(all).toEqual([...all].sort((one, other) => other - one));
    expect(all.slice(-3)).toEqual([21, 11, 1]);
    let text = '';
    for await (const piece of new AuditReader(directory).export({ orgId: 'beta' }, 'ndjson')) text += piece;
    expect(text.trimEnd().split('\n')).toHaveLength(10);
  });

  test('goes on where a crash has stopped it', async () => {
    const { directory, key, write, verified, found } = scene();
    write(...flood('beta', 1), ...flood('acme', 60));
    const [first] = segmentsOf(directory);
    const deleted = readFileSync(join(directory, first!));
    await shrunk(directory, LIMIT, key);
    // Added before the anchor was signed; deleted after it was.
    appendFileSync(join(directory, 'kept', '0000000000000001.ndjson'), 'half a li');
    writeFileSync(join(directory, first!), deleted);
    expect(await verified()).toMatchObject({ ok: true, kept: 1 });
    write(...flood('beta', 1), ...flood('acme', 60));
    await shrunk(directory, LIMIT, key);
    expect(await found('beta')).toEqual([62, 1]);
    expect(await verified()).toMatchObject({ ok: true });
  });

  test('deletes nothing for an anchor that is about another log', async () => {
    const { directory, key, write } = scene();
    write(...flood('acme', 9));
    writeAnchor({ directory, firstId: 5_000, prevHash: 'a'.repeat(64), key, nowMs: NOON_MS });
    expect(await shrunk(directory, 1_000_000, key)).toEqual([]);
    expect(segmentsOf(directory)).toHaveLength(3);
  });

  test('counts the files that it knows no second time after a restart', async () => {
    const { directory, key, write } = scene();
    write(...flood('beta', 1), ...flood('acme', 60));
    await shrunk(directory, LIMIT, key);
    const noted = JSON.parse(readFileSync(join(directory, 'shares.json'), 'utf8')) as Record<string, unknown>;
    expect(noted['0000000000000001.ndjson']).toMatchObject({ bytes: { '"beta"': expect.any(Number) } });
    writeFileSync(join(directory, 'shares.json'), 'nonsense');
    write(...flood('acme', 10));
    expect(await shrunk(directory, LIMIT, key)).not.toEqual([]);
  });
});

describe('a kept entry', () => {
  const kept = async () => {
    const whole = scene();
    whole.write(...flood('beta', 2), ...flood('acme', 60));
    await shrunk(whole.directory, LIMIT, whole.key);
    return { ...whole, path: join(whole.directory, 'kept', '0000000000000001.ndjson') };
  };

  test.each([
    ['is deleted', (path: string) => unlinkSync(path), 'removed'],
    ['loses an entry', (path: string) => writeFileSync(path, readFileSync(path, 'utf8').split('\n', 1)[0]!), 'removed'],
    [
      'is edited',
      (path: string) => writeFileSync(path, readFileSync(path, 'utf8').replace('"agent_id":"a"', '"agent_id":"b"')),
      'changed',
    ],
    [
      'is put into another order',
      (path: string) =>
        writeFileSync(path, `${readFileSync(path, 'utf8').trimEnd().split('\n').reverse().join('\n')}\n`),
      'reordered',
    ],
  ])('is reported by verification when it %s', async (_, attack, problem) => {
    const { verified, path } = await kept();
    attack(path);
    expect(await verified()).toMatchObject({
      ok: false,
      firstBroken: { segment: expect.stringContaining('kept/'), problem },
    });
  });

  test('stands in the signed anchor, which nobody can write anew without the key', async () => {
    const { directory, verified } = await kept();
    const anchor = readAnchor(directory) as Anchor;
    expect(anchor.kept).toMatchObject([{ name: '0000000000000001.ndjson', entries: 2 }]);
    const { kept: _, ...without } = anchor;
    writeFileSync(join(directory, 'anchor.json'), JSON.stringify(without));
    rmSync(join(directory, 'kept'), { recursive: true });
    expect(await verified()).toMatchObject({ ok: false, firstBroken: { segment: 'anchor.json', problem: 'forged' } });
  });

  test('is verified in a copy, and not by its size alone', async () => {
    const { directory, key, path } = await kept();
    const copy = join(freshDirectory(), 'copy');
    cpSync(directory, copy, { recursive: true });
    expect(await verifyAuditLog(copy, { checkpointKey: createPublicKey(key) })).toMatchObject({ ok: true, kept: 2 });
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  test('goes when it is older than the age that retention has since', async () => {
    const { directory, key, writer, verified, found } = await kept();
    append(writer, [{ ...ofOrg('acme'), timestampMs: NOON_MS + 60_000 }]);
    applyRetention({ directory, maxAgeMs: 30_000, key, nowMs: NOON_MS + 61_000 });
    expect(await found('beta')).toEqual([]);
    expect(readAnchor(directory)).not.toHaveProperty('kept');
    expect(await verified()).toMatchObject({ ok: true, kept: 0 });
  });
});
