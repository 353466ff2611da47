import { describe, expect, test } from 'vitest';
import { refuseForeignHost, refuseForeignOrigin } from '../../../src/doors/engine/access.ts';

const OWN = ['https://gateway.test'];

describe('origin', () => {
  test.each<[string, string | undefined, string | undefined]>([
    ['no page', undefined, 'localhost:8080'],
    ['no page, at a host without a name', undefined, undefined],
    ['a page of the public URL', 'https://gateway.test', 'localhost:8080'],
    ['a page of the host that was asked', 'http://localhost:8080', 'localhost:8080'],
    ['a page at the default port, which a proxy names', 'https://gateway.internal', 'gateway.internal:443'],
    ['a page at that of http, likewise', 'http://gateway.internal', 'gateway.internal:80'],
    ['a page of that host, however its name is written', 'http://gateway.internal:8080', 'Gateway.Internal:8080'],
  ])('a request from %s is accepted', (_what, origin, askedHost) => {
    expect(refuseForeignOrigin(origin, askedHost, OWN)).toBeUndefined();
  });

  test.each<[string, string, string | undefined]>([
    ['another site', 'https://evil.test', 'localhost:8080'],
    ['a site that begins like one of ours', 'https://gateway.test.evil.test', 'localhost:8080'],
    ['the default port of another scheme', 'http://gateway.internal', 'gateway.internal:443'],
    ['another port', 'http://localhost:9090', 'localhost:8080'],
    ['a page that hides where it is from', 'null', 'localhost:8080'],
    ['a page that hides where it is from, at a host without a name', 'null', ''],
    ['nowhere, at a host without a name', '', undefined],
    ['a file, at a host without a name', 'file://', ''],
  ])('a request from %s is refused', (_what, origin, askedHost) => {
    expect(refuseForeignOrigin(origin, askedHost, OWN)).toEqual({
      ok: false,
      fault: { kind: 'foreign_origin', origin },
    });
  });

  test.each([
    undefined,
    'localhost:8080',
    'LOCALHOST',
    'localhost.:8080',
    'board.localhost:8080',
    '127.0.0.1:8080',
    '[::1]:8080',
    '192.0.2.1',
    'gateway.test',
    'gateway.test:443',
  ])('on loopback the gateway answers to the name %s', (host) => {
    expect(refuseForeignHost(host, ['gateway.test'])).toBeUndefined();
  });

  // A page of these, once its name resolves to 127.0.0.1, is of the gateway's own origin to the browser.
  test.each(['evil.test:8080', 'evil.test', 'localhost.evil.test', '127.0.0.1.evil.test:8080', 'xlocalhost', ''])(
    'on loopback the gateway does not answer to the name %j',
    (host) => {
      expect(refuseForeignHost(host, ['gateway.test'])).toEqual({ ok: false, fault: { kind: 'foreign_host', host } });
    },
  );

  test('a gateway that others reach answers to any name', () => {
    expect(refuseForeignHost('gateway.example.com', undefined)).toBeUndefined();
  });

  test('a long origin is quoted in 256 characters', () => {
    const origin = `https://${'x'.repeat(10_000)}.test`;
    expect(refuseForeignOrigin(origin, 'localhost', OWN)).toEqual({
      ok: false,
      fault: { kind: 'foreign_origin', origin: origin.slice(0, 256) },
    });
  });
});
