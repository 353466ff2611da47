import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AUDIT_EVENTS } from '../../src/core/audit/audit.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';

let gateway: TestGateway;
describe('static', () => {
  beforeAll(async () => {
    gateway = await startTestGateway();
  });
  const connection = new Agent({ keepAlive: true, maxSockets: 1 });
  afterAll(async () => {
    connection.destroy();
    await gateway.stop();
  });

  type Answer = {
    readonly status: number;
    readonly headers: Record<string, string | string[] | undefined>;
    readonly bytes: number;
  };

  /** As it comes over the wire: `fetch` would unpack it. */
  function ask(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> {
    return new Promise((resolve, reject) => {
      request(gateway.url + path, { method, headers, agent: connection }, (response) => {
        let bytes = 0;
        response.on('data', (chunk: Buffer) => {
          bytes += chunk.length;
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, bytes }));
      })
        .on('error', reject)
        .end();
    });
  }

  test('the dashboard is at /, with a policy that allows its own gateway only', async () => {
    const { status, headers } = await ask('/');
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-cache',
    });
  });

  test('a browser with a cached file gets an empty 304', async () => {
    const { headers } = await ask('/app.js', { 'accept-encoding': 'gzip' });
    const again = await ask('/app.js', { 'accept-encoding': 'gzip', 'if-none-match': String(headers.etag) });
    expect(again).toMatchObject({ status: 304, bytes: 0 });
    expect(again.headers.etag).toBe(headers.etag);
    expect(await ask('/app.js', { 'accept-encoding': 'br', 'if-none-match': String(headers.etag) })).toMatchObject({
      status: 200,
    });
    // Proxies that compress weaken tags, and caches name several.
    for (const known of [`W/${headers.etag}`, `"another", ${headers.etag}`, '*']) {
      expect(await ask('/app.js', { 'accept-encoding': 'gzip', 'if-none-match': known })).toMatchObject({
        status: 304,
        bytes: 0,
      });
    }
  });

  test('files are compressed for clients that accept it', async () => {
    const plain = await ask('/style.css');
    const gzip = await ask('/style.css', { 'accept-encoding': 'gzip, deflate' });
    const brotli = await ask('/style.css', { 'accept-encoding': 'gzip, br' });
    expect({
      plain: plain.headers['content-encoding'],
      gzip: gzip.headers['content-encoding'],
      brotli: brotli.headers['content-encoding'],
    }).toEqual({ plain: undefined, gzip: 'gzip', brotli: 'br' });
    expect(gzip.bytes).toBeLessThan(plain.bytes / 2);
    expect(brotli.bytes).toBeLessThanOrEqual(gzip.bytes);
    expect((await ask('/style.css', { 'accept-encoding': 'br;q=0, gzip;q=0.5' })).headers['content-encoding']).toBe(
      'gzip',
    );
  });

  test('HEAD gives the length without a body and keeps the connection usable', async () => {
    const whole = await ask('/app.js');
    const head = await ask('/app.js', {}, 'HEAD');
    expect(head).toMatchObject({ status: 200, bytes: 0 });
    expect(head.headers['content-length']).toBe(String(whole.bytes));
    expect(await ask('/app.js')).toMatchObject({ status: 200, bytes: whole.bytes });
  });

  test('nothing but the files of the dashboard is served', async () => {
    const paths = [
      '/tsconfig.json',
      '/package.json',
      '/../package.json',
      '/%2e%2e/package.json',
      '/views',
      '/views/',
      '/index.html.bak',
    ];
    expect(await Promise.all(paths.map(async (path) => (await ask(path)).status))).toEqual(paths.map(() => 404));
    expect((await ask('/', {}, 'POST')).status).toBe(405);
  });

  test('select-all also works in Safari, with its prefix', async () => {
    const style = readFileSync('web/style.css', 'utf8');
    const wholesOf = (property: RegExp) => [...style.matchAll(property)].map(([, value]) => value);
    expect(wholesOf(/-webkit-user-select: (\w+)/g)).toEqual(['all']);
    expect(wholesOf(/(?<!-)user-select: (\w+)/g)).toEqual(['all']);
  });

  test('the audit view offers every kind of entry', () => {
    const [, listed = ''] = /EVENTS = \[([^\]]*)\]/.exec(readFileSync('web/views/audit.js', 'utf8')) ?? [];
    expect([...listed.matchAll(/'(\w+)'/g)].map(([, event]) => event)).toEqual([...AUDIT_EVENTS]);
  });
});
