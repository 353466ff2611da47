import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MAX_ATTRIBUTES_BYTES, redactAttributes } from '../../../src/core/audit/redact.ts';
import { redactedKeys, redactText } from '../../../src/core/audit/redact-text.ts';
import { CODE_POINT } from '../../support/code-point.ts';
import { runs } from '../../support/runs.ts';

const keys = redactedKeys();
const redact = (attributes: Readonly<Record<string, unknown>>) =>
  JSON.parse(JSON.stringify(redactAttributes(attributes, keys))) as unknown;

describe('audit redact', () => {
  test('a name longer than any honest one hides its value, and is not read', () => {
    // Normalized, these marks would take minutes.
    const marks = `a${'\u0315'.repeat(250_000)}${'\u0300'.repeat(250_000)}`;
    expect(keys.covers(marks)).toBe(true);
    expect(keys.covers('x'.repeat(1_024))).toBe(false);
    expect(keys.covers('x'.repeat(1_025))).toBe(true);
  });

  test('redacts values under a secret key, whatever its case, nesting and punctuation', () => {
    expect(
      redact({
        user: 'ada',
        Password: 'p',
        apiKey: 'k',
        'X-Api-Key': 'k',
        db_password: { host: 'h' },
        'Set-Cookie': ['a', 'b'],
        nested: { list: [{ client_secret: 's', keep: 1 }, 'x'], refresh_token: null },
        max_tokens: 512,
        private_key: 7,
      }),
    ).toEqual({
      user: 'ada',
      Password: '[redacted]',
      apiKey: '[redacted]',
      'X-Api-Key': '[redacted]',
      db_password: '[redacted]',
      'Set-Cookie': '[redacted]',
      nested: { list: [{ client_secret: '[redacted]', keep: 1 }, 'x'], refresh_token: '[redacted]' },
      max_tokens: 512,
      private_key: '[redacted]',
    });
  });

  test('redacts a string that looks like a credential anywhere, also as a key', () => {
    const apiKey = 'svc_k7Qm2_0123456789abcdefABCDEF0123456789abcd';
    const jwt = 'eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJrZXk6MSJ9.c2lnbmF0dXJl';
    expect(
      redact({
        a: apiKey,
        b: `use ${apiKey} please`,
        c: [jwt],
        d: `curl -H "Authorization: Bearer abcdef0123456789"`,
        e: '-----BEGIN PRIVATE KEY-----\nMC4CAQ',
        [apiKey]: 1,
        f: 'svc_account is a plain word',
        g: 'bearer of news',
      }),
    ).toEqual({
      a: '[redacted]',
      b: '[redacted]',
      c: ['[redacted]'],
      d: '[redacted]',
      e: '[redacted]',
      '[redacted]': 1,
      f: 'svc_account is a plain word',
      g: 'bearer of news',
    });
  });

  test('a resource that carries a credential is not logged', () => {
    expect(redactText('https://example.org/?key=svc_k7Qm2_0123456789abcdefABCDEF0123456789abcd')).toBe('[redacted]');
    expect(redactText('https://example.org/reports/2026/03')).toBe('https://example.org/reports/2026/03');
  });

  test('the token minted for an agent is never logged, wherever it appears', () => {
    const token = 'svcagent_OdAxdabsIkEs6ho_4yDaNWpfphY9V9eH7O_U-UdSWgs';
    expect(redactText(`curl -d ${token} https://example.org`)).toBe('[redacted]');
    expect(redact({ argv: ['agent', token], [token]: 1, kept: 'svcagent_1 is a name' })).toEqual({
      argv: ['agent', '[redacted]'],
      '[redacted]': 1,
      kept: 'svcagent_1 is a name',
    });
  });

  test.each([
    ['https://ada:hunter2@example.org/a', 'https://ada:[redacted]@example.org/a'],
    ['postgres://:p%40ss@db/x and redis://u:p@cache', 'postgres://:[redacted]@db/x and redis://u:[redacted]@cache'],
    ['https://example.org/?access_token=abc&page=2', 'https://example.org/?access_token=[redacted]&page=2'],
    ['/reset?user=ada&X-Api-Key=k#top', '/reset?user=ada&X-Api-Key=[redacted]#top'],
    ['https://example.org:8080/@ada?max_tokens=512', 'https://example.org:8080/@ada?max_tokens=512'],
    ['mail ada@example.org: size=3', 'mail ada@example.org: size=3'],
  ])('redacts the password and secret parameters of a URL: %s', (text, logged) => {
    expect(redactText(text)).toBe(logged);
    expect(redact({ where: text })).toEqual({ where: logged });
  });

  test.each([
    ['https://u:hunter@2@example.org/', 'https://u:[redacted]@example.org/'],
    ['https://0123456789abcdef0123456789@example.org/a.git', 'https://[redacted]@example.org/a.git'],
    ['https://git@example.org/a.git', 'https://git@example.org/a.git'],
    ['https://example.org/#access_token=hunter2&state=1', 'https://example.org/#access_token=[redacted]&state=1'],
    ['curl -H "X-Api-Key: hunter2" https://example.org', 'curl -H "X-Api-Key: [redacted]" https://example.org'],
    ['Authorization: Basic aHVudA==', 'Authorization: [redacted]'],
    ['Cookie: sid=hunter2; other=hunter3\nAccept: text/html', 'Cookie: [redacted]\nAccept: text/html'],
    ['mysql --password=hunter2 -u root', 'mysql --password=[redacted] -u root'],
    ["mysql --password 'hunter 2' --verbose", "mysql --password '[redacted]' --verbose"],
    ['login --token --verbose', 'login --token --verbose'],
    ['PGPASSWORD=hunter2 psql -c "select 1"', 'PGPASSWORD=[redacted] psql -c "select 1"'],
    ['{"user":"ada","password": "hunter 2","size":3}', '{"user":"ada","password": "[redacted]","size":3}'],
    ['git clone with ghp_0123456789abcdefghijklmnopqrstuvwxyz', '[redacted]'],
    ['OPENAI=sk-proj-0123456789abcdefghij', '[redacted]'],
    [
      'the token bucket; a sk-learn-pipeline-of-many-steps at 12:30',
      'the token bucket; a sk-learn-pipeline-of-many-steps at 12:30',
    ],
  ])('redacts what follows a secret-like header, option or variable name: %s', (text, logged) => {
    expect(redactText(text)).toBe(logged);
    expect(redactText(logged)).toBe(logged);
  });

  test.each([
    // A quote within it is no end of it, however deep it is quoted itself.
    ['{"password":"hunter\\"2","size":3}', '{"password":"[redacted]","size":3}'],
    ['{"password":"hunter\\\\","size":3}', '{"password":"[redacted]","size":3}'],
    [
      '{"body":"{\\"password\\":\\"hunter\\\\\\"2\\",\\"size\\":3}"}',
      '{"body":"{\\"password\\":\\"[redacted]\\",\\"size\\":3}"}',
    ],
    ['{"cmd":"mysql --password \\"hunter 2\\" -u root"}', '{"cmd":"mysql --password \\"[redacted]\\" -u root"}'],
    // Several at once, as under a key of attributes.
    ['{"api_keys":["hunter2","hunter\\"]3"],"size":3}', '{"api_keys":[redacted],"size":3}'],
    ['{"credentials": {"user":"ada","pin":["hunter2"]},"size":3}', '{"credentials": [redacted],"size":3}'],
    [
      '{"body":"{\\"tokens\\":1,\\"api_keys\\":[\\"hunter2\\"]}"}',
      '{"body":"{\\"tokens\\":1,\\"api_keys\\":[redacted]}"}',
    ],
    ['password=[hunter]2 and go', 'password=[redacted] and go'],
    [
      'Authorization: Digest username="ada", response="hunter2"\nAccept: text/html',
      'Authorization: [redacted]\nAccept: text/html',
    ],
    ['curl -H \'Cookie: sid="hunter2"; a=b\' https://example.org', "curl -H 'Cookie: [redacted]' https://example.org"],
    ['{:password => "hunter2", :size => 3}', '{:password => "[redacted]", :size => 3}'],
    ['password => hunter2', 'password => [redacted]'],
    ['password := hunter2', 'password := [redacted]'],
    ['password    = hunter2', 'password    = [redacted]'],
    ['token:\n  hunter2', 'token:\n  [redacted]'],
  ])('redacts the whole value and no more: %s', (text, logged) => {
    expect(redactText(text)).toBe(logged);
    expect(redactText(logged)).toBe(logged);
  });

  test('redacts secret-like fields of JSON inside text and keeps what surrounds it', () => {
    const text = fc
      .array(fc.constantFrom('hunter2', '"', '\\', "'", ' ', '\n', '{', '}', '[', ']', ',', ':', '='), { maxLength: 8 })
      .map((parts) => `${parts.join('')}hunter2`);
    const value = fc.oneof(
      text,
      fc.array(text, { minLength: 1 }),
      fc.record({ a: text, b: fc.array(text) }),
      fc.array(fc.record({ x: text }), { minLength: 1 }),
    );
    fc.assert(
      fc.property(
        fc.constantFrom('password', 'api_keys', 'X-Api-Key'),
        value,
        fc.integer({ min: 0, max: 3 }),
        fc.constantFrom(0, 2),
        (key, secret, depth, indent) => {
          let json = JSON.stringify({ before: 'kept', [key]: secret, after: 'kept too' }, null, indent);
          for (let n = 0; n < depth; n += 1) json = JSON.stringify({ body: json });
          const logged = redactText(json);
          expect(logged).not.toContain('hunter2');
          expect(logged).toMatch(/kept\\*".*kept too\\*"/s);
        },
      ),
      { numRuns: runs(80) },
    );
  });

  test.each([
    'password',
    'passwd',
    'passphrase',
    'secret',
    'token',
    'authorization',
    'api_key',
    'access_key',
    'secret_key',
    'private_key',
    'cookie',
    'set-cookie',
    'credential',
    'credentials',
    'session_id',
    'bearer',
    'passwords',
    'secrets',
    'access_tokens',
    'refresh_tokens',
    'api_keys',
    'access_keys',
    'private_keys',
    'cookies',
  ])('%s is a secret-like name in text as well as as a key', (key) => {
    expect(redactText(`set ${key}=hunter2 and go`)).toBe(`set ${key}=[redacted] and go`);
    expect(redact({ [key]: 'hunter2' })).toEqual({ [key]: '[redacted]' });
  });

  test('redacts a secret whose name is beside it, as in lists of headers or arguments', () => {
    expect(
      redact({
        har: [
          { name: 'Authorization', value: 'hunter2' },
          { name: 'Accept', value: 'text/html' },
        ],
        env: [{ key: 'DB_PASSWORD', value: 'hunter2' }],
        pairs: [
          ['X-Api-Key', 'hunter2'],
          ['Accept', 'text/html'],
        ],
        raw: ['Cookie', 'hunter2', 'Host', 'example.org'],
        argv: ['mysql', '--password', 'hunter2', '--verbose'],
        lines: ['X-Api-Key: hunter2', 'Accept: text/html'],
        said: ['what is my password', 'that I cannot tell'],
      }),
    ).toEqual({
      har: [
        { name: 'Authorization', value: '[redacted]' },
        { name: 'Accept', value: 'text/html' },
      ],
      env: [{ key: 'DB_PASSWORD', value: '[redacted]' }],
      pairs: [
        ['X-Api-Key', '[redacted]'],
        ['Accept', 'text/html'],
      ],
      raw: ['Cookie', '[redacted]', 'Host', 'example.org'],
      argv: ['mysql', '--password', '[redacted]', '--verbose'],
      lines: ['X-Api-Key: [redacted]', 'Accept: text/html'],
      said: ['what is my password', 'that I cannot tell'],
    });
  });

  test('recognises a secret-like key in any spelling, and when it names several', () => {
    for (const key of [
      'password ',
      'authorization:',
      'pass word',
      'user.password',
      'ｐassword',
      'passwords',
      'api-keys',
      'refresh_tokens',
      'client_secrets',
      'Cookies',
    ]) {
      expect(redact({ [key]: ['hunter2'] })).toEqual({ [key]: '[redacted]' });
    }
  });

  test('attributes with nothing to redact come back as the same object', () => {
    const attributes = { size: 12, tags: ['a', 'b'], nested: { ok: true, none: null } };
    expect(redactAttributes(attributes, keys)).toBe(attributes);
  });

  test('attributes that are too large or too deep keep their key names only', () => {
    const truncated = { truncated: true, limit_bytes: 4096 };
    expect(redact({ note: 'hunter2 '.repeat(600), size: 1 })).toEqual({ ...truncated, keys: ['note', 'size'] });
    expect(redact({ note: '\u0001'.repeat(700) })).toEqual({ ...truncated, keys: ['note'] });
    let deep: unknown = 1;
    for (let level = 0; level < 10_000; level += 1) deep = { deep };
    expect(redact({ deep })).toEqual({ ...truncated, keys: ['deep'] });
    const many = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`key${index}`, index]));
    expect((redact(many) as { keys: string[] }).keys).toHaveLength(32);
  });

  test.each([
    ['a', 4084],
    [' ', 4084],
    ['\u007f', 4084],
    ['"', 2042],
    ['\\', 2042],
    ['é', 2042],
    ['\u0080', 2042],
    ['\u07ff', 2042],
    ['\u0800', 1361],
    ['€', 1361],
    ['\u001f', 680],
  ])('logs as many attributes of %j as fit the limit in bytes of JSON', (unit, most) => {
    const fits = { note: unit.repeat(most) };
    expect(redactAttributes(fits, keys)).toBe(fits);
    expect(redact({ note: unit.repeat(most + 1) })).toEqual({ truncated: true, limit_bytes: 4096, keys: ['note'] });
  });

  test('objects and lists are logged down to the thirty-second level', () => {
    for (const wrap of [(inner: unknown) => ({ inner }), (inner: unknown) => [inner]]) {
      const nested = (levels: number) => ({
        deep: Array.from({ length: levels }).reduce((inner) => wrap(inner), 1 as unknown),
      });
      expect(redact(nested(31))).toEqual(nested(31));
      expect(redact(nested(32))).toEqual({ truncated: true, limit_bytes: 4096, keys: ['deep'] });
    }
  });

  test('a key named __proto__ is kept as a key, beside a redacted one', () => {
    const attributes = JSON.parse('{"__proto__":{"admin":true},"password":"p"}') as Record<string, unknown>;
    expect(JSON.stringify(redactAttributes(attributes, keys))).toBe(
      '{"__proto__":{"admin":true},"password":"[redacted]"}',
    );
  });

  test('a truncated name ends with a whole character', () => {
    expect(redactAttributes({ [`${'x'.repeat(63)}🙂`]: 1, text: 'x'.repeat(5000) }, keys)).toMatchObject({
      keys: ['x'.repeat(63), 'text'],
    });
    expect(redactAttributes({ [`${'x'.repeat(62)}🙂y`]: 1, text: 'x'.repeat(5000) }, keys)).toMatchObject({
      keys: [`${'x'.repeat(62)}🙂`, 'text'],
    });
  });

  test('keeps the surroundings of a secret deep inside', () => {
    const around = 'x'.repeat(300);
    let deep: Record<string, unknown> = { token: 't' };
    for (let level = 0; level < 10; level += 1) deep = { around, deep };
    const out = JSON.stringify(redactAttributes(deep, keys));
    expect(out).toContain('"token":"[redacted]"');
    expect(out.split(around)).toHaveLength(11);
  });

  test('a custom list of keys replaces the default list', () => {
    const own = redactedKeys(['Order-Number', '']);
    expect(redactAttributes({ order_number: 7, password: 'p' }, own)).toEqual({
      order_number: '[redacted]',
      password: 'p',
    });
  });

  test('any input comes out as JSON near the limit and without the secret', () => {
    const secret = 'hunter2-hunter2';
    const value = fc.oneof(
      fc.jsonValue(),
      fc.string({ unit: CODE_POINT, maxLength: 3000, size: 'max' }),
      fc.constant(secret),
    );
    fc.assert(
      fc.property(fc.dictionary(fc.string({ unit: CODE_POINT }), value, { maxKeys: 40, size: 'max' }), (attributes) => {
        const out = JSON.stringify(
          redactAttributes({ inner: { ...attributes, token: secret }, password: [secret] }, keys),
        );
        expect(Buffer.byteLength(out)).toBeLessThanOrEqual(2 * MAX_ATTRIBUTES_BYTES);
        expect(out).not.toContain(`"token":"${secret}"`);
        expect(out).not.toContain(`["${secret}"]`);
      }),
    );
  });

  test('redacts every secret of a list, and no non-text value after a secret name', () => {
    expect(
      redact({ argv: ['password', 'one', 'keep', 'token', 'two', 'svc_live_0123456789abcdefghijklmnop', 'end'] }),
    ).toEqual({ argv: ['password', '[redacted]', 'keep', 'token', '[redacted]', '[redacted]', 'end'] });
    expect(redact({ argv: ['password', 12, 'token', { keep: 1 }] })).toEqual({
      argv: ['password', 12, 'token', { keep: 1 }],
    });
  });

  test('numbers, flags and nulls count too: a long list of them is not logged', () => {
    const truncated = { truncated: true, limit_bytes: 4096, keys: ['list'] };
    for (const item of [0, true, null])
      expect(redact({ list: Array.from({ length: 5_000 }, () => item) })).toEqual(truncated);
  });

  test('nothing behind the limit is read', () => {
    const unread = {
      get: () => {
        throw new Error('was read');
      },
      enumerable: true,
    };
    const list = Object.defineProperty(
      Array.from({ length: 5_000 }, () => 'text'),
      4_999,
      unread,
    );
    const object = Object.defineProperty(
      Object.fromEntries(Array.from({ length: 5_000 }, (_, nth) => [`key-${nth}`, 1])),
      'last',
      unread,
    );
    expect(redact({ list })).toEqual({ truncated: true, limit_bytes: 4096, keys: ['list'] });
    expect(redact({ object })).toEqual({ truncated: true, limit_bytes: 4096, keys: ['object'] });
  });

  test('redacts a credential used as an attribute name, whatever its value', () => {
    const key = 'svc_live_0123456789abcdefghijklmnop';
    expect(redact({ first: 1, [key]: 1 })).toEqual({ first: 1, '[redacted]': 1 });
    expect(redact({ first: 1, [key]: 'x'.repeat(5_000) })).toEqual({
      truncated: true,
      limit_bytes: 4096,
      keys: ['first', '[redacted]'],
    });
  });

  test.each(['https://example.org/?token=', 'password: ', '--password=', 'cookie:', '{"secret":""}'])(
    'a name without a value stays as it is: %s',
    (text) => {
      expect(redactText(text)).toBe(text);
    },
  );

  test('redacts all of a header, and of any other name its value alone', () => {
    expect(redactText('Authorization: Digest one two')).toBe('Authorization: [redacted]');
    expect(redactText('token: one two')).toBe('token: [redacted] two');
  });
});
