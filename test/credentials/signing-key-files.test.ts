import { generateKeyPairSync } from 'node:crypto';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openSigningKeys } from '../../src/credentials/signing-key-files.ts';
import { must, temporaryFolder, testClock } from '../support/harness.ts';

const DAY_MS = 86_400_000;

// The key of RFC 8037, Appendix A; its thumbprint is in A.3.
const RFC_PEM = `-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n-----END PRIVATE KEY-----\n`;
const RFC_JWK = {
  kty: 'OKP',
  crv: 'Ed25519',
  x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
  kid: 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k',
  use: 'sig',
  alg: 'EdDSA',
};

const pemOf = (type: 'ed25519' | 'ed448') =>
  generateKeyPairSync(type as 'ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;
const ecPem = () =>
  generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;

function setUp() {
  const dataDir = temporaryFolder();
  const clock = testClock();
  const open = (given?: string) => openSigningKeys({ dataDir, given, clock });
  return { dataDir, clock, open, file: join(dataDir, 'keys', 'signing.json') };
}

describe('a generated key', () => {
  test('is created once, survives a restart, and only its owner may read it', async () => {
    const { dataDir, open, file } = setUp();
    const first = await open();
    expect((await open()).signer()).toEqual(first.signer());
    expect([join(dataDir, 'keys'), file].map((path) => (statSync(path).mode & 0o777).toString(8))).toEqual([
      '700',
      '600',
    ]);
    expect(readdirSync(join(dataDir, 'keys'))).toEqual(['signing.json']);
    expect(JSON.stringify(first.jwks())).not.toContain('PRIVATE');
    expect(first.jwks().keys).toEqual([
      {
        kty: 'OKP',
        crv: 'Ed25519',
        x: expect.stringMatching(/^[\w-]{43}$/),
        kid: first.signer().kid,
        use: 'sig',
        alg: 'EdDSA',
      },
    ]);
  });

  test('rotates: the old private half is gone, its public half stays for a day', async () => {
    const { open, file, clock } = setUp();
    const keys = await open();
    const before = keys.signer();
    const { kid } = must(await keys.rotate());
    expect(keys.signer().kid).toBe(kid);
    const secret = before.privateKeyPem.split('\n')[1] ?? '';
    expect(readFileSync(file, 'utf8')).not.toContain(secret);
    clock.advance(DAY_MS + 4999);
    expect((await open()).verifier(before.kid)).toBeDefined();
    clock.advance(1);
    expect(keys.verifier(before.kid)).toBeUndefined();
    expect((await open()).verifier(before.kid)).toBeUndefined();
    expect(keys.verifier(kid)).toBeDefined();
  });

  test('two rotations at once leave three keys that verify', async () => {
    const keys = await setUp().open();
    const before = keys.signer().kid;
    const [one, two] = (await Promise.all([keys.rotate(), keys.rotate()])).map((result) => must(result).kid);
    expect(keys.signer().kid).toBe(two);
    expect(
      keys
        .jwks()
        .keys.map(({ kid }) => kid)
        .sort(),
    ).toEqual([before, one, two].sort());
  });

  test('a rotation by another process is adopted by a reload', async () => {
    const { open } = setUp();
    const running = await open();
    const { kid } = must(await (await open()).rotate());
    expect(running.signer().kid).not.toBe(kid);
    expect(await running.reload()).toEqual({ kid, changed: true });
    expect(running.signer().kid).toBe(kid);
    expect(running.jwks().keys).toHaveLength(2);
    expect(await running.reload()).toEqual({ kid, changed: false });
  });

  test('a damaged file stops the start by name; a reload that meets one changes nothing', async () => {
    const { open, file } = setUp();
    const running = await open();
    const { kid } = running.signer();
    const whole = JSON.parse(readFileSync(file, 'utf8'));
    const { active } = whole;
    const damaged = [
      '{"active":',
      '{}',
      'null',
      ...[
        { ...active, kid: undefined },
        { ...active, publicKeyPem: 'no key' },
        { ...active, publicKeyPem: undefined },
        { ...active, privateKeyPem: 'no key' },
      ].map((key) => JSON.stringify({ ...whole, active: key })),
      JSON.stringify({ ...whole, retired: [{ kid: 'k', publicKeyPem: 'no key', untilMs: 1 }] }),
    ];
    for (const text of damaged) {
      writeFileSync(file, text);
      await expect(open(), text).rejects.toThrow(`${file} is damaged`);
      await expect(running.reload(), text).rejects.toThrow('is damaged');
      expect(running.signer().kid).toBe(kid);
    }
  });
});

describe('a configured key', () => {
  test('signs under its RFC 7638 thumbprint, from text or a path, and is not stored', async () => {
    for (const form of ['text', 'escaped', 'path'] as const) {
      const { dataDir, open, file } = setUp();
      const path = join(dataDir, 'jwt.pem');
      writeFileSync(path, RFC_PEM);
      const keys = await open({ text: RFC_PEM, escaped: RFC_PEM.replaceAll('\n', '\\n'), path }[form]);
      expect(keys.jwks()).toEqual({ keys: [RFC_JWK] });
      expect(readFileSync(file, 'utf8')).not.toContain('PRIVATE');
    }
  });

  test('cannot be rotated here', async () => {
    const keys = await setUp().open(RFC_PEM);
    const detail =
      'the signing key is set by SVC_JWT_PRIVATE_KEY; if that names a file, replace the key in it and send SIGHUP, otherwise restart with another key';
    expect(await keys.rotate()).toEqual({ ok: false, fault: { kind: 'conflict', detail } });
  });

  test('is retired by another one or by its removal', async () => {
    const { open } = setUp();
    await open(RFC_PEM);
    const next = await open(pemOf('ed25519'));
    expect(next.verifier(RFC_JWK.kid)).toBeDefined();
    const own = await open();
    expect(own.signer().kid).not.toBe(next.signer().kid);
    expect(own.jwks().keys).toHaveLength(3);
  });

  test('further keys only verify, so that gateways can change over one by one', async () => {
    const keys = await setUp().open(`${pemOf('ed25519')}${RFC_PEM}`);
    expect(keys.signer().kid).not.toBe(RFC_JWK.kid);
    expect(keys.verifier(RFC_JWK.kid)).toBeDefined();
  });

  test('is refused if it is of another kind, with the reason and without the key', async () => {
    const { open, dataDir } = setUp();
    const unreadable = join(dataDir, 'missing.pem');
    const withoutItsLines = ecPem().split('\n')[1]!; // taken for a path
    expect(
      await open(withoutItsLines).then(
        () => '',
        (reason: Error) => reason.message,
      ),
    ).toBe('SVC_JWT_PRIVATE_KEY: is neither a key in PEM format nor a readable file (ENOENT)');
    for (const given of [
      ecPem(),
      pemOf('ed448'),
      '-----BEGIN PUBLIC KEY-----\nMCow\n-----END PUBLIC KEY-----',
      '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----',
      unreadable,
    ]) {
      const error = await open(given).then(
        () => undefined,
        (reason: Error) => reason,
      );
      expect(error?.message).toMatch(/^SVC_JWT_PRIVATE_KEY: /);
      expect(error?.message).not.toContain(given.split('\n')[1] ?? 'no second line');
    }
  });
});
