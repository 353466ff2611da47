import { describe, expect, test } from 'vitest';
import { type Config, VARIABLES } from '../../src/config/config.ts';
import { readConfig, unknownVariables } from '../../src/config/read.ts';

const read = (env: Record<string, string> = {}): Config => {
  const config = readConfig(env);
  if (!config.ok) throw new Error(config.fault.problems.join('; '));
  return config.value;
};
const problems = (env: Record<string, string>): readonly string[] => {
  const config = readConfig(env);
  return config.ok ? [] : config.fault.problems;
};

describe('config', () => {
  test('the defaults are safe: loopback, closed registration, limits, deny', () => {
    expect(read()).toMatchObject({
      SVC_HTTP_ADDR: { host: '127.0.0.1', port: 8080 },
      SVC_GRPC_ADDR: { host: '127.0.0.1', port: 50051 },
      SVC_DATA_DIR: './data',
      SVC_DATABASE_URL: undefined,
      SVC_POLICY_PATH: undefined,
      SVC_AUTH_OPEN_REGISTRATION: false,
      SVC_SMTP_HOST: undefined,
      SVC_SMTP_PORT: 587,
      SVC_SMTP_FROM: 'no-reply@localhost',
      SVC_CORS_ORIGINS: [],
      SVC_AUDIT_ON_FAILURE: 'deny',
      SVC_OPS_TTL_SECS: 60,
      SVC_OPS_SWEEP_SECS: 10,
    });
  });

  test.each([
    ['1', true],
    ['true', true],
    ['YES', true],
    ['True', true],
    ['0', false],
    ['no', false],
    ['on', false],
    ['2', false],
    ['', false],
  ])('SVC_AUTH_OPEN_REGISTRATION=%s means %s, and is never a mistake', (text, expected) => {
    expect(read({ SVC_AUTH_OPEN_REGISTRATION: text }).SVC_AUTH_OPEN_REGISTRATION).toBe(expected);
  });

  test.each([
    ['0.0.0.0:80', { host: '0.0.0.0', port: 80 }],
    ['[::1]:8080', { host: '::1', port: 8080 }],
    ['localhost:0', { host: 'localhost', port: 0 }],
  ])('SVC_HTTP_ADDR=%s', (text, expected) => expect(read({ SVC_HTTP_ADDR: text }).SVC_HTTP_ADDR).toEqual(expected));

  describe('a mistake is named with what is expected', () => {
    test.each([
      [{ SVC_HTTP_ADDR: '8080' }, 'SVC_HTTP_ADDR must be host:port, not "8080"'],
      [{ SVC_HTTP_ADDR: 'localhost:65536' }, 'SVC_HTTP_ADDR must be host:port, not "localhost:65536"'],
      [{ SVC_HTTP_ADDR: '::1:80' }, 'SVC_HTTP_ADDR must be host:port, not "::1:80"'],
      [{ SVC_OPS_TTL_SECS: '0' }, 'SVC_OPS_TTL_SECS must be a whole number of seconds from 1 to 86400, not "0"'],
      [{ SVC_OPS_TTL_SECS: '1e3' }, 'SVC_OPS_TTL_SECS must be a whole number of seconds from 1 to 86400, not "1e3"'],
      [{ SVC_OPS_TTL_SECS: '-5' }, 'SVC_OPS_TTL_SECS must be a whole number of seconds from 1 to 86400, not "-5"'],
      [{ SVC_OPS_TTL_SECS: '0x10' }, 'SVC_OPS_TTL_SECS must be a whole number of seconds from 1 to 86400, not "0x10"'],
      [
        { SVC_OPS_SWEEP_SECS: '3601' },
        'SVC_OPS_SWEEP_SECS must be a whole number of seconds from 1 to 3600, not "3601"',
      ],
      [
        { SVC_RATE_LIMIT_API: '1000001' },
        'SVC_RATE_LIMIT_API must be a whole number of requests a minute from 0 to 1000000, not "1000001"',
      ],
      [{ SVC_SMTP_PORT: '0' }, 'SVC_SMTP_PORT must be a port from 1 to 65535, not "0"'],
      [{ SVC_MAX_PENDING: '0' }, 'SVC_MAX_PENDING must be a whole number from 1 to 1000000, not "0"'],
      [{ SVC_ARGON2_PARALLELISM: '17' }, 'SVC_ARGON2_PARALLELISM must be a whole number from 1 to 16, not "17"'],
      [{ SVC_AUDIT_ON_FAILURE: 'maybe' }, 'SVC_AUDIT_ON_FAILURE must be `deny` or `allow`, not "maybe"'],
      [{ SVC_PUBLIC_URL: 'ftp://x' }, 'SVC_PUBLIC_URL must be http://… or https://…, without a query, not "ftp://x"'],
      [
        { SVC_PUBLIC_URL: 'https://gw.example/?a=1' },
        'SVC_PUBLIC_URL must be http://… or https://…, without a query, not "https://gw.example/?a=1"',
      ],
      [
        { SVC_HTTP_ADDR: 'localhost:8080', SVC_GRPC_ADDR: 'localhost:8080' },
        'SVC_GRPC_ADDR must not use the same port as SVC_HTTP_ADDR (8080)',
      ],
      [{ SVC_HTTP_ADDR: '0.0.0.0:50051' }, 'SVC_GRPC_ADDR must not use the same port as SVC_HTTP_ADDR (50051)'],
      [
        { SVC_HTTP_ADDR: '127.0.0.1:9000', SVC_GRPC_ADDR: '[::]:9000' },
        'SVC_GRPC_ADDR must not use the same port as SVC_HTTP_ADDR (9000)',
      ],
      [
        { SVC_HTTP_ADDR: '[::ffff:127.0.0.1]:9000', SVC_GRPC_ADDR: '0.0.0.0:9000' },
        'SVC_GRPC_ADDR must not use the same port as SVC_HTTP_ADDR (9000)',
      ],
      [
        { SVC_ARGON2_MEMORY_KIB: '64', SVC_ARGON2_PARALLELISM: '16' },
        'SVC_ARGON2_MEMORY_KIB must be at least 128, which is 8 times SVC_ARGON2_PARALLELISM, not "64"',
      ],
    ])('%j', (env, problem) =>
      expect(problems(env as Record<string, string>)).toEqual([expect.stringContaining(problem)]),
    );

    test.each([
      '*',
      'board.example.com',
      'https://board.example.com/',
      'https://Board.example.com',
      'https://board.example.com:443',
      'https://*.example.com',
      'https://good.example, https://bad.example/x',
    ])('SVC_CORS_ORIGINS=%s would never equal what a browser sends', (origins) =>
      expect(problems({ SVC_CORS_ORIGINS: origins })).toEqual([
        `SVC_CORS_ORIGINS must be origins as browsers send them, such as https://board.example.com: without path, trailing slash or wildcard; separated by commas, not "${origins}"`,
      ]),
    );

    test('all at once', () =>
      expect(problems({ SVC_HTTP_ADDR: 'x', SVC_GRPC_ADDR: 'y', SVC_OPS_TTL_SECS: 'z' })).toHaveLength(3));
  });

  test.each([
    [
      { SVC_CORS_ORIGINS: 'https://a.example, http://localhost:3000,capacitor://localhost' },
      { SVC_CORS_ORIGINS: ['https://a.example', 'http://localhost:3000', 'capacitor://localhost'] },
    ],
    [{ SVC_HTTP_ADDR: '127.0.0.1:0', SVC_GRPC_ADDR: '127.0.0.1:0' }, { SVC_GRPC_ADDR: { host: '127.0.0.1', port: 0 } }],
    [
      { SVC_HTTP_ADDR: '10.0.0.1:443', SVC_GRPC_ADDR: '10.0.0.2:443' },
      { SVC_GRPC_ADDR: { host: '10.0.0.2', port: 443 } },
    ],
    [{ SVC_HTTP_ADDR: '0.0.0.0:443', SVC_GRPC_ADDR: '[::1]:443' }, { SVC_GRPC_ADDR: { host: '::1', port: 443 } }],
    [
      { SVC_HTTP_ADDR: '[fe80::1]:443', SVC_GRPC_ADDR: '0.0.0.0:443' },
      { SVC_GRPC_ADDR: { host: '0.0.0.0', port: 443 } },
    ],
    [{ SVC_PUBLIC_URL: 'https://gw.example/gateway' }, { SVC_PUBLIC_URL: 'https://gw.example/gateway' }],
  ])('a mere lookalike is no mistake: %j', (env, expected) =>
    expect(read(env as Record<string, string>)).toMatchObject(expected),
  );

  test('a wrong secret is not repeated', () => {
    for (const [name, value] of [
      ['SVC_DATABASE_URL', 'mysql://user:hunter2@host'],
      ['SVC_BOOTSTRAP_API_KEY', 'hunter2'],
    ]) {
      const found = problems({ [name!]: value! });
      expect(found).toHaveLength(1);
      expect(found[0]).not.toContain('hunter2');
    }
  });

  const URL_EXPECTED =
    'SVC_DATABASE_URL must be postgres://user:password@host:port/database, with special characters of the password percent-encoded (# as %23, / as %2F, @ as %40, % as %25), or the word embedded';

  test.each([
    'postgres://gw:ab#cd@db:5432/gw',
    'postgres://gw:ab/cd@db:5432/gw',
    'postgres://gw:ab@/cd@db/gw',
    'postgres://gw:ab%cdef@db/gw',
    'postgres://a:1,b:2/gw',
  ])('SVC_DATABASE_URL=%s is refused with how to write a password', (text) =>
    expect(problems({ SVC_DATABASE_URL: text })).toEqual([URL_EXPECTED]),
  );

  test.each([
    'postgres://gw:p%40ss%3Aw%2Frd%23@db:5432/gw?sslmode=verify-full',
    'postgres://gw:100%sure@db/gw',
    'postgres:///gw?host=/run/postgresql&user=gw',
    'postgres://%2Frun%2Fpostgresql/gw',
    'postgres://gw:secret@/gw?host=/run/postgresql',
    'postgres://gw@/gw?host=/run/postgresql&port=5433',
    'embedded',
  ])('SVC_DATABASE_URL=%s is accepted as it is', (text) =>
    expect(read({ SVC_DATABASE_URL: text }).SVC_DATABASE_URL).toBe(text),
  );

  test('an empty variable counts as unset, and those of the client are ignored', () => {
    expect(
      read({ SVC_SMTP_HOST: '', SVC_HTTP_ADDR: '', SVC_CLI_API_KEY: 'x', PATH: '/bin' }).SVC_SMTP_HOST,
    ).toBeUndefined();
  });

  test('every default is a valid value, and every setting has a description', () => {
    for (const [name, { fallback, parse, meaning, expects }] of Object.entries(VARIABLES)) {
      if (fallback !== undefined)
        expect([name, (parse as (text: string) => unknown)(fallback)]).not.toEqual([name, undefined]);
      expect({ name, hasMeaning: meaning.length > 10, hasExpectation: expects.length > 3 }).toEqual({
        name,
        hasMeaning: true,
        hasExpectation: true,
      });
    }
  });

  test('an unknown SVC_ setting is reported, and one of the client is not', () => {
    expect(
      unknownVariables({
        SVC_AUDIT_FSYNK: 'always',
        SVC___proto__: '1',
        SVC_CLI_API_KEY: 'x',
        SVC_HTTP_ADDR: 'x',
        PATH: '/bin',
      }),
    ).toEqual(['SVC_AUDIT_FSYNK', 'SVC___proto__']);
  });
});
