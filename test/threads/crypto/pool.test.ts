import { spawnSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import { VARIABLES } from '../../../src/config/config.ts';
import { PACKAGE_ROOT } from '../../../src/system/package-files.ts';
import type { CryptoPool, CryptoPoolOptions } from '../../../src/threads/crypto/pool.ts';
import { createCryptoPool, passwordThreads } from '../../../src/threads/crypto/pool.ts';
import { eventually } from '../../support/eventually.ts';

/** As a gateway has it whose operator has set nothing. */
const DEFAULT_COST = {
  memoryKib: Number(VARIABLES.SVC_ARGON2_MEMORY_KIB.fallback),
  iterations: Number(VARIABLES.SVC_ARGON2_ITERATIONS.fallback),
  parallelism: Number(VARIABLES.SVC_ARGON2_PARALLELISM.fallback),
};
const CHEAP = { memoryKib: 1024, iterations: 1, parallelism: 1 } as const;
const FRAME = { issuer: 'svc-gateway', audience: 'svc-gateway' } as const;
const CLAIMS = {
  iss: 'svc-gateway',
  aud: 'svc-gateway',
  sub: 'key:1',
  iat: 1,
  exp: 2,
  jti: 'j',
  scope: 'read',
} as const;
const PASSWORD = 'correct horse battery';

const cleanups: (() => Promise<void> | void)[] = [];
const complaints: string[] = [];
describe('crypto pool', () => {
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0)) await cleanup();
    complaints.length = 0;
  });

  function startPool(options: Partial<CryptoPoolOptions> = {}): CryptoPool {
    const pool = createCryptoPool({
      threads: 1,
      cost: CHEAP,
      uvThreads: 4,
      maxPasswordQueue: 64,
      onError: (message, cause) => complaints.push(`${message}: ${cause}`),
      ...options,
    });
    cleanups.push(() => pool.close());
    return pool;
  }

  /** A worker file that does what a test needs to see go wrong. */
  function workerThat(body: string): string {
    const folder = mkdtempSync(join(tmpdir(), 'svc-crypto-'));
    cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
    const file = join(folder, 'worker.mjs');
    writeFileSync(file, `export async function run(tasks) { ${body} }\n`);
    return file;
  }

  function keyPair() {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519');
    return {
      privateKeyPem: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
      publicKeyPem: publicKey.export({ type: 'spki', format: 'pem' }) as string,
    };
  }

  describe('passwords', () => {
    test('a hash is argon2id with the given parameters and its own salt', async () => {
      const { passwords } = startPool();
      const [first, second] = await Promise.all([passwords.hash(PASSWORD), passwords.hash(PASSWORD)]);
      if (!first.ok || !second.ok) throw new Error('hashing failed');
      expect(first.value).toMatch(/^\$argon2id\$v=19\$m=1024,p=1,t=1\$|^\$argon2id\$v=19\$m=1024,t=1,p=1\$/);
      expect(first.value).not.toBe(second.value);
      expect(await passwords.verify(first.value, PASSWORD)).toEqual({
        ok: true,
        value: { matches: true, rehash: false },
      });
      expect(await passwords.verify(first.value, 'correct horse batterx')).toEqual({
        ok: true,
        value: { matches: false, rehash: false },
      });
    });

    test('the default is 19 MiB, two passes, one lane', async () => {
      const { passwords } = startPool({ cost: DEFAULT_COST });
      const hash = await passwords.hash(PASSWORD);
      expect(hash.ok && hash.value.split('$')[3]?.split(',').sort().join(',')).toBe('m=19456,p=1,t=2');
    });

    test('a hash with other parameters still verifies and asks for a renewal', async () => {
      const old = await startPool().passwords.hash(PASSWORD);
      const { passwords } = startPool({ cost: { ...CHEAP, iterations: 2 } });
      expect(await passwords.verify(old.ok ? old.value : '', PASSWORD)).toEqual({
        ok: true,
        value: { matches: true, rehash: true },
      });
    });

    test('an invalid stored hash fails that one task and is reported to the operator', async () => {
      const { passwords } = startPool();
      expect(await passwords.verify('plainly not a hash', PASSWORD)).toEqual({
        ok: false,
        fault: { kind: 'internal' },
      });
      expect(complaints).toHaveLength(1);
      expect(complaints[0]).toContain('a crypto task failed');
      expect((await passwords.hash(PASSWORD)).ok).toBe(true);
    });

    test('argon2 never gets two threads of the shared libuv pool', () => {
      expect([1, 2, 3, 8].map((threads) => passwordThreads(threads, 4))).toEqual([1, 2, 2, 2]);
      expect(passwordThreads(8, 16)).toBe(8);
      expect(passwordThreads(4, 1)).toBe(1);
    });
  });

  describe('bounds', () => {
    test('refuse one task beyond the queue at once; the others finish in order', async () => {
      const { passwords } = startPool({ maxPasswordQueue: 2 });
      const order: number[] = [];
      const asked = [1, 2, 3].map((n) =>
        passwords.hash(PASSWORD).then((result) => {
          order.push(n);
          return result.ok;
        }),
      );
      const refused = await passwords.hash(PASSWORD);
      expect(refused).toEqual({
        ok: false,
        fault: { kind: 'overloaded', what: 'password hashing', retryAfterSecs: 1 },
      });
      expect(order).toEqual([]);
      expect(await Promise.all(asked)).toEqual([true, true, true]);
      expect(order).toEqual([1, 2, 3]);
    });

    test('each task of a batch that a thread works on counts as pending', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'svc-crypto-'));
      cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
      const filename = workerThat(`
      const { existsSync } = await import('node:fs');
      while (tasks.length > 1 && !existsSync(${JSON.stringify(join(folder, 'go'))})) await new Promise((resolve) => setTimeout(resolve, 5));
      return tasks.map(() => ({ ok: true, value: 'done' }));`);
      const pool = startPool({ filename });
      const asked = Array.from({ length: 21 }, () =>
        pool.tokenLane.run({ type: 'sign-token', kid: 'k', privateKeyPem: '', claims: CLAIMS }),
      );
      await asked[0];
      await eventually(() => expect(pool.pending().tokens).toBe(20)); // the others went to the thread together
      writeFileSync(join(folder, 'go'), '');
      await Promise.all(asked);
      await eventually(() => expect(pool.pending().tokens).toBe(0));
    });

    test('tokens are verified while 50 passwords wait to be hashed', async () => {
      const pool = startPool({ cost: DEFAULT_COST });
      const { privateKeyPem, publicKeyPem } = keyPair();
      const signed = await pool.tokenLane.run({ type: 'sign-token', kid: 'k', privateKeyPem, claims: CLAIMS });
      const verify = () =>
        pool.tokenLane.run({ type: 'verify-token', token: signed.ok ? signed.value : '', publicKeyPem, frame: FRAME });
      await verify();
      const storm = Array.from({ length: 50 }, () => pool.passwords.hash(PASSWORD));
      for (let n = 0; n < 41; n += 1) expect((await verify()).ok).toBe(true);
      expect(pool.pending().passwords).toBeGreaterThan(10);
      await pool.close();
      expect((await Promise.all(storm)).every((result) => result.ok || result.fault.kind === 'overloaded')).toBe(true);
    });
  });

  describe('failures', () => {
    test('a dying thread fails its task, and the next task gets a new thread', async () => {
      const filename = workerThat(`
      if (tasks[0].password === 'die') process.exit(3);
      return tasks.map(() => ({ ok: true, value: 'done' }));`);
      const { passwords } = startPool({ filename });
      for (let round = 0; round < 3; round += 1) {
        const [died, next] = await Promise.all([passwords.hash('die'), passwords.hash('live')]);
        expect(died).toEqual({ ok: false, fault: { kind: 'internal' } });
        expect(next).toEqual({ ok: true, value: 'done' });
      }
      expect(complaints).toHaveLength(3);
      expect(complaints[0]).toContain('a crypto thread died');
    });

    test.each(['throw new Error("cannot load")', 'process.exit(4)'])(
      'threads that cannot load fail their tasks, and the next that can works: %s',
      async (failure) => {
        const filename = workerThat(
          'if (tasks[0].password === "die" || tasks[0].token === "die") process.exit(3); return tasks.map(() => ({ ok: true, value: "done" }));',
        );
        writeFileSync(
          filename,
          `import { existsSync } from 'node:fs';\nif (existsSync(${JSON.stringify(`${filename}.broken`)})) ${failure};\n${readFileSync(filename, 'utf8')}`,
        );
        const { passwords, tokenLane } = startPool({ filename, timeoutMs: 60_000 });
        const verify = (token: string) =>
          tokenLane.run({ type: 'verify-token', token, publicKeyPem: '', frame: FRAME });
        // Both have loaded: one that still does would meet what only its successor is to meet.
        expect(await Promise.all([passwords.hash('live'), verify('live')])).toEqual([
          { ok: true, value: 'done' },
          { ok: true, value: 'done' },
        ]);
        for (const ask of [passwords.hash, verify]) {
          complaints.length = 0;
          expect(await ask('live')).toEqual({ ok: true, value: 'done' });
          writeFileSync(`${filename}.broken`, '');
          expect(await ask('die')).toEqual({ ok: false, fault: { kind: 'internal' } });
          for (let round = 1; round <= 3; round += 1) {
            expect(await ask('live')).toEqual({ ok: false, fault: { kind: 'internal' } });
            expect(complaints).toHaveLength(round + 1);
          }
          rmSync(`${filename}.broken`);
          expect(await ask('live')).toEqual({ ok: true, value: 'done' });
        }
      },
    );

    test('a thread stuck on a token is replaced when its task times out', async () => {
      const filename = workerThat(`
      if (tasks[0].token === 'hang') for (;;);
      return tasks.map(() => ({ ok: true, value: { sub: 'key:1' } }));`);
      const { tokenLane } = startPool({ filename, timeoutMs: 1_500 });
      const verify = (token: string) => tokenLane.run({ type: 'verify-token', token, publicKeyPem: '', frame: FRAME });
      expect(await verify('hang')).toEqual({
        ok: false,
        fault: { kind: 'overloaded', what: 'token verification', retryAfterSecs: 1 },
      });
      await eventually(async () => expect(await verify('live')).toEqual({ ok: true, value: { sub: 'key:1' } }));
    });

    test('a slow hash times out, and its thread is left to finish', async () => {
      const { passwords } = startPool({ cost: { memoryKib: 65_536, iterations: 8, parallelism: 1 }, timeoutMs: 60 });
      expect(await passwords.hash(PASSWORD)).toMatchObject({ ok: false, fault: { kind: 'overloaded' } });
    });

    test('an answer after its timeout is dropped, and expired tasks behind it do not start', async () => {
      const done = join(mkdtempSync(join(tmpdir(), 'svc-crypto-')), 'done');
      writeFileSync(done, '');
      cleanups.push(() => rmSync(join(done, '..'), { recursive: true, force: true }));
      const filename = workerThat(`
      const { appendFileSync } = await import('node:fs');
      appendFileSync(${JSON.stringify(done)}, tasks[0].password + ' ');
      if (tasks[0].password === 'slow') await new Promise((resolve) => setTimeout(resolve, 3_000));
      return tasks.map(({ password }) => ({ ok: true, value: 'hash of ' + password }));`);
      const { passwords } = startPool({ filename, timeoutMs: 1_500 });
      const answers = await Promise.all([passwords.hash('slow'), passwords.hash('late')]);
      expect(answers).toMatchObject([
        { ok: false, fault: { kind: 'overloaded' } },
        { ok: false, fault: { kind: 'overloaded' } },
      ]);
      expect(await passwords.hash('next')).toEqual({ ok: true, value: 'hash of next' });
      expect(readFileSync(done, 'utf8')).toBe('slow next ');
    });

    test('a thread that is given up while it still loads ends, and nothing else with it', () => {
      // Names that are sought through many files take long to link, which is when ending a thread is dangerous.
      const folder = mkdtempSync(join(tmpdir(), 'svc-crypto-'));
      cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
      const names = Array.from({ length: 20_000 }, (_, n) => `name${n}`);
      writeFileSync(join(folder, 'names0.mjs'), `export const ${names.map((name) => `${name} = 0`).join()};`);
      for (let n = 1; n < 8; n += 1)
        writeFileSync(join(folder, `names${n}.mjs`), `export * from './names${n - 1}.mjs';`);
      writeFileSync(
        join(folder, 'worker.mjs'),
        `import { ${names.join()} } from './names7.mjs';\nexport const run = () => [];`,
      );
      // In a process of its own: it is the whole process that would end.
      const child = spawnSync(
        process.execPath,
        [
          '--input-type=module',
          '--eval',
          `
      import { createCryptoPool } from ${JSON.stringify(pathToFileURL(join(PACKAGE_ROOT, 'dist/src/threads/crypto/pool.js')).href)};
      for (let timeoutMs = 50; timeoutMs <= 550; timeoutMs += 100) {
        const pool = createCryptoPool({ threads: 1, cost: ${JSON.stringify(CHEAP)}, uvThreads: 4, maxPasswordQueue: 64, onError: console.log, timeoutMs, filename: ${JSON.stringify(join(folder, 'worker.mjs'))} });
        await pool.tokenLane.run({ type: 'verify-token', token: '', publicKeyPem: '', frame: {} });
        await pool.close();
      }
      console.log('all closed');`,
        ],
        { encoding: 'utf8', timeout: 60_000 },
      );
      expect({ out: child.stdout, errors: child.stderr, signal: child.signal }).toEqual({
        // A fast machine has loaded it before the later ones are given up.
        out: expect.stringMatching(
          /^a crypto task timed out token verification\n(a crypto task (timed out token verification|failed no outcome)\n){5}all closed\n$/,
        ),
        errors: '',
        signal: null,
      });
    });

    test('closing answers what still waits', async () => {
      const pool = startPool();
      const asked = Array.from({ length: 5 }, () => pool.passwords.hash(PASSWORD));
      await pool.close();
      expect((await Promise.all(asked)).map((result) => result.ok || result.fault.kind)).toContain('overloaded');
      expect(await pool.passwords.hash(PASSWORD)).toMatchObject({ ok: false, fault: { kind: 'overloaded' } });
    });
  });
});
