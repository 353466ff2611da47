/** Logs of gateways that have signed what the others ended in, and what attackers do to them. */
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { createCheckpointer, loadCheckpointKey } from '../../src/audit-log/checkpoint.ts';
import type { PeerHead } from '../../src/core/audit/witness.ts';
import { append, freshDirectory, NOON_MS, numbered, openWriter, SEGMENT_ONE } from '../audit-log/log.ts';
import { createCliHome } from '../support/cli.ts';

const NAMES = ['one', 'three', 'two'] as const;
type Name = (typeof NAMES)[number];
const cli = createCliHome();
afterAll(() => cli.remove());

describe('audit verify --peers', () => {
  let base: string;
  const dirOf = (name: string) => join(base, name);
  const auditOf = (name: string) => join(dirOf(name), 'audit');
  const keyOf = (name: string) => loadCheckpointKey(join(dirOf(name), 'keys', 'audit-checkpoint.pem'));

  /** Adds entries, and answers what the log ends in then. */
  const write = (name: string, entries: number): PeerHead => {
    const writer = openWriter(auditOf(name), { gateway: name });
    append(writer, numbered(entries));
    const head = { gateway: name, ...writer.head() };
    writer.close();
    return head;
  };
  const sign = (name: string, { id, hash }: PeerHead, peers: readonly PeerHead[]) =>
    createCheckpointer({ directory: auditOf(name), key: keyOf(name), gateway: name, nowMs: () => NOON_MS }).record(
      { id, hash },
      peers,
    );
  /** Rounds of entries at all, after each of which all sign. */
  const live = (rounds: number, names: readonly Name[] = NAMES) => {
    for (let round = 0; round < rounds; round += 1) {
      const heads = names.map((name) => write(name, 5));
      for (const head of heads)
        sign(
          head.gateway,
          head,
          heads.filter((other) => other !== head),
        );
    }
  };
  const verify = (...words: string[]) =>
    cli.run(['audit', 'verify', dirOf('one'), '--peers', dirOf('two'), dirOf('three'), ...words]);

  beforeEach(() => {
    base = freshDirectory();
    for (const name of NAMES) mkdirSync(auditOf(name), { recursive: true });
    live(2);
  });

  test('logs that nobody has touched are whole, and have been seen by the others', async () => {
    write('two', 3); // nobody has seen these
    const { status, stdout, stderr } = await verify('--strict');
    expect({ status, stderr, lines: stdout.split('\n') }).toEqual({
      status: 0,
      stderr: '',
      lines: [
        'ok    one: 10 entries, unbroken from 1 to 10; seen up to entry 10 by two, three, the last time at 2026-03-01T12:00:00.000Z',
        'ok    two: 13 entries, unbroken from 1 to 13; seen up to entry 10 by one, three, the last time at 2026-03-01T12:00:00.000Z',
        'ok    three: 10 entries, unbroken from 1 to 10; seen up to entry 10 by one, two, the last time at 2026-03-01T12:00:00.000Z',
        '',
      ],
    });
    const alone = await cli.run(['audit', 'verify', dirOf('two')]);
    expect([alone.status, alone.stdout]).toEqual([0, expect.stringContaining('signatures checked')]);
  });

  test('a log rewritten and signed anew with its own key contradicts the others', async () => {
    rmSync(auditOf('two'), { recursive: true });
    mkdirSync(auditOf('two'));
    const forged = write('two', 12);
    sign('two', forged, []);
    expect((await cli.run(['audit', 'verify', dirOf('two')])).status).toBe(0); // by itself it looks whole
    const { status, stdout } = await verify();
    // The entries are as before up to the fifth, whose successors were made anew.
    expect([status, stdout]).toEqual([
      1,
      expect.stringMatching(
        /^BROKEN {2}two: entry (5|10) was rewritten: the checkpoint of gateway (one|three) from 2026/m,
      ),
    ]);
    const { logs } = JSON.parse((await verify('-o', 'json')).stdout);
    expect(logs.map(({ gateway, ok }: any) => [gateway, ok])).toEqual([
      ['one', true],
      ['two', false],
      ['three', true],
    ]);
  });

  test('a log cut with its checkpoints ends before what the others have seen', async () => {
    const path = join(auditOf('three'), SEGMENT_ONE);
    writeFileSync(path, `${readFileSync(path, 'utf8').split('\n').slice(0, 7).join('\n')}\n`);
    const checkpoints = join(auditOf('three'), 'checkpoints.ndjson');
    writeFileSync(checkpoints, `${readFileSync(checkpoints, 'utf8').split('\n')[0]}\n`);
    expect((await cli.run(['audit', 'verify', dirOf('three')])).status).toBe(0);
    const { status, stdout } = await verify();
    expect([status, stdout]).toEqual([
      1,
      expect.stringMatching(
        /^BROKEN {2}three: entry 8 was cut: the checkpoint of gateway (one|two) from \S+ covers entry 10, but the log ends at 7$/m,
      ),
    ]);
  });

  test('detects changed statements about others without the key', async () => {
    const path = join(auditOf('one'), 'checkpoints.ndjson');
    writeFileSync(path, readFileSync(path, 'utf8').replace('"gateway":"two","id":10', '"gateway":"two","id":9'));
    const { status, stdout } = await verify();
    expect([status, stdout]).toEqual([
      1,
      expect.stringMatching(/^BROKEN {2}one: its signatures are forged: the signature does not match$/m),
    ]);
    expect(stdout).toContain('ok    two'); // what is not genuine is not believed of others either
  });

  test('a directory that was replaced by that of another gateway is noticed', async () => {
    rmSync(dirOf('three'), { recursive: true });
    cpSync(dirOf('two'), dirOf('three'), { recursive: true });
    const { status, stderr } = await verify();
    expect([status, stderr]).toEqual([1, expect.stringContaining('are both the log of gateway two')]);
    // In what order they are given does not matter.
    live(1);
    const words = ['audit', 'verify', dirOf('two'), '--peers', dirOf('one')];
    expect((await cli.run(words)).stdout).toContain('not compared  three: the log was not given');
  });

  test('several folders need --peers, and one alone is compared with the one here', async () => {
    const several = await cli.run(['audit', 'verify', dirOf('one'), dirOf('two')]);
    expect([several.status, several.stderr]).toEqual([2, expect.stringContaining('only with --peers')]);
    const env = { SVC_DATA_DIR: dirOf('one') };
    const { status, stdout } = await cli.run(['audit', 'verify', '--peers', dirOf('two')], { env });
    expect([status, stdout.split('\n')[0]]).toEqual([0, expect.stringContaining('one: 10 entries')]);
  });

  test('a directory that is missing, empty or of a gateway alone is refused', async () => {
    const words = ['audit', 'verify', dirOf('one'), '--peers', dirOf('two')];
    expect((await cli.run(words)).status).toBe(0);
    const strict = await cli.run([...words, '--strict']);
    expect([strict.status, strict.stdout]).toEqual([1, expect.stringContaining('UNPROVEN  three')]);
    const refused = async (dir: string) => {
      const { status, stderr } = await cli.run(['audit', 'verify', dirOf('one'), '--peers', dir]);
      expect(status).toBe(1);
      return stderr;
    };
    expect(await refused(dirOf('nowhere'))).toContain('no audit log in');
    expect(await refused(freshDirectory())).toContain('is not the log of a gateway in a cluster');
    const alone = openWriter(join(base, 'alone', 'audit'));
    append(alone, numbered(3));
    alone.close();
    expect(await refused(dirOf('alone'))).toContain('is not the log of a gateway in a cluster');
    const key = await cli.run([...words, '--key', join(dirOf('one'), 'keys', 'audit-checkpoint.pem')]);
    expect([key.status, key.stderr]).toEqual([2, expect.stringContaining('--peers takes the key of each directory')]);
  });

  test('checkpoints from before the cluster stay valid beside the new ones', async () => {
    const directory = join(base, 'grown', 'audit');
    const key = keyOf('grown');
    const before = openWriter(directory);
    append(before, numbered(4));
    createCheckpointer({ directory, key, nowMs: () => NOON_MS }).record(before.head());
    before.close();
    sign('grown', write('grown', 4), []);
    const { status, stdout } = await cli.run(['audit', 'verify', dirOf('grown')]);
    expect([status, stdout]).toEqual([0, expect.stringContaining('2 checkpoints up to entry 8')]);
  });
});
