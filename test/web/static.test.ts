import { readdirSync, readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WEBHOOK_EVENTS } from '../../src/core/webhooks/webhook.ts';
import { WEB_FOLDER } from '../../src/system/package-files.ts';
import { EVENTS } from '../../web/src/pages/webhooks/events.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';

let gateway: GatewayHere;
describe('static', () => {
  beforeAll(async () => {
    gateway = await startGatewayHere();
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

  /** A built file, by its ending: its name has a hash. */
  const built = (ending: string): string =>
    `/assets/${readdirSync(join(WEB_FOLDER, 'assets')).find((name) => name.endsWith(ending))}`;

  test('the first load is under 150 KB, compressed', async () => {
    const files = ['/', '/favicon.svg', built('.js'), built('.css')];
    const sizes = await Promise.all(files.map(async (path) => (await ask(path, { 'accept-encoding': 'br' })).bytes));
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(150_000);
  });

  test('each of its pages opens it, by a GET alone', async () => {
    const paths = [
      '/operations',
      '/operations/t%3As',
      '/approvals/1',
      '/agents/-/team/agent',
      '/changes',
      '/cluster?x=1',
    ];
    const answers = await Promise.all(paths.map((path) => ask(path)));
    expect(answers.map(({ status, headers }) => [status, headers['content-type']])).toEqual(
      paths.map(() => [200, 'text/html; charset=utf-8']),
    );
    expect((await ask('/operations/a/b')).status).toBe(404);
    expect((await ask('/operations', {}, 'POST')).status).toBe(405);
  });

  test('files named by their content are kept for good', async () => {
    expect((await ask(built('.js'))).headers['cache-control']).toBe('public, max-age=31536000, immutable');
  });

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
    const { headers } = await ask(built('.js'), { 'accept-encoding': 'gzip' });
    const again = await ask(built('.js'), { 'accept-encoding': 'gzip', 'if-none-match': String(headers.etag) });
    expect(again).toMatchObject({ status: 304, bytes: 0 });
    expect(again.headers.etag).toBe(headers.etag);
    expect(await ask(built('.js'), { 'accept-encoding': 'br', 'if-none-match': String(headers.etag) })).toMatchObject({
      status: 200,
    });
    // Proxies that compress weaken tags, and caches name several.
    for (const known of [`W/${headers.etag}`, `"another", ${headers.etag}`, '*']) {
      expect(await ask(built('.js'), { 'accept-encoding': 'gzip', 'if-none-match': known })).toMatchObject({
        status: 304,
        bytes: 0,
      });
    }
  });

  test('files are compressed for clients that accept it', async () => {
    const plain = await ask(built('.css'));
    const gzip = await ask(built('.css'), { 'accept-encoding': 'gzip, deflate' });
    const brotli = await ask(built('.css'), { 'accept-encoding': 'gzip, br' });
    expect({
      plain: plain.headers['content-encoding'],
      gzip: gzip.headers['content-encoding'],
      brotli: brotli.headers['content-encoding'],
    }).toEqual({ plain: undefined, gzip: 'gzip', brotli: 'br' });
    expect(gzip.bytes).toBeLessThan(plain.bytes / 2);
    expect(brotli.bytes).toBeLessThanOrEqual(gzip.bytes);
    expect((await ask(built('.css'), { 'accept-encoding': 'br;q=0, gzip;q=0.5' })).headers['content-encoding']).toBe(
      'gzip',
    );
  });

  test('HEAD gives the length without a body and keeps the connection usable', async () => {
    const whole = await ask(built('.js'));
    const head = await ask(built('.js'), {}, 'HEAD');
    expect(head).toMatchObject({ status: 200, bytes: 0 });
    expect(head.headers['content-length']).toBe(String(whole.bytes));
    expect(await ask(built('.js'))).toMatchObject({ status: 200, bytes: whole.bytes });
  });

  test('nothing but the files of the dashboard is served', async () => {
    const paths = [
      '/tsconfig.json',
      '/package.json',
      '/../package.json',
      '/%2e%2e/package.json',
      '/assets',
      '/assets/',
      '/licenses/preact',
      '/index.html.bak',
    ];
    expect(await Promise.all(paths.map(async (path) => (await ask(path)).status))).toEqual(paths.map(() => 404));
    expect((await ask('/', {}, 'POST')).status).toBe(405);
  });

  test('select-all also works in Safari, with its prefix', async () => {
    const style = readFileSync('web/src/style.css', 'utf8');
    const wholesOf = (property: RegExp) => [...style.matchAll(property)].map(([, value]) => value);
    expect(wholesOf(/-webkit-user-select: (\w+)/g)).toEqual(['none', 'all']);
    expect(wholesOf(/(?<!-)user-select: (\w+)/g)).toEqual(['none', 'all']);
  });

  test('the form for a webhook offers every kind of event', () => {
    expect(EVENTS).toEqual(WEBHOOK_EVENTS);
  });
});
