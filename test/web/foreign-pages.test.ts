/** A foreign page's access to a gateway through the browser of its visitor (docs/spec.md, Registration). */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { BROWSER_PATH, FOREIGN_HOST, NO_BROWSER, sharedBrowser } from '../support/browser.ts';
import { startTestGateway } from '../support/gateway.ts';
import { withPostgres } from '../support/postgres.ts';

const newDatabase = withPostgres();
const REGISTER = '/api/v1/auth/register';
const THEIRS = JSON.stringify({ email: 'mallory@evil.test', password: 'a horse that mallory knows' });
const OURS = JSON.stringify({ email: 'owner@example.com', password: 'a horse that nobody corrects' });

if (BROWSER_PATH === undefined) console.warn(`the tests of foreign pages are skipped: ${NO_BROWSER}`);

describe.skipIf(BROWSER_PATH === undefined)('foreign pages', () => {
  test('make no account and read nothing, also under a name of this machine', async () => {
    const evil = createServer((_request, response) =>
      response.writeHead(200, { 'content-type': 'text/html' }).end('<title>evil</title>'),
    ).listen(0, '127.0.0.1');
    onTestFinished(() => void evil.close());
    await once(evil, 'listening');
    const browser = await sharedBrowser();
    const gateway = await startTestGateway({
      env: { SVC_DATABASE_URL: await newDatabase(), SVC_ARGON2_MEMORY_KIB: '1024' },
    });
    const context = await browser.newContext();
    onTestFinished(async () => {
      await context.close();
      await gateway.stop('SIGKILL');
    });
    const page = await context.newPage();

    // Requests that a page may send without asking first; it sees none of the answers.
    await page.goto(`http://${FOREIGN_HOST}:${(evil.address() as AddressInfo).port}/`);
    const seen = await page.evaluate(
      async ([url, body]) => {
        const bodies = [new Blob([body!]), body!, new URLSearchParams({ [body!]: '' })];
        const answers = await Promise.all(
          bodies.map((each) => fetch(url!, { method: 'POST', mode: 'no-cors', body: each }).then(({ type }) => type)),
        );
        const headers = { 'content-type': 'application/json' };
        const asked = await fetch(url!, { method: 'POST', headers, body: body! }).then(
          () => 'answered',
          () => 'refused',
        );
        return [...answers, asked];
      },
      [`${gateway.url}${REGISTER}`, THEIRS],
    );
    expect(seen).toEqual(['opaque', 'opaque', 'opaque', 'refused']);

    // Its name leads to this machine by now, so that the browser takes the gateway for a part of it.
    await page.goto(`http://${FOREIGN_HOST}:${new URL(gateway.url).port}/`);
    const ask = ([path, body]: readonly string[]) =>
      fetch(path!, {
        ...(body !== undefined && { method: 'POST', headers: { 'content-type': 'application/json' }, body }),
      }).then(({ status }) => status);
    expect(await page.evaluate(ask, [REGISTER, THEIRS])).toBe(421);
    expect(await page.evaluate(ask, ['/metrics'])).toBe(421);
    expect((await gateway.call('GET', '/api/v1/auth/methods', undefined, null)).body).toMatchObject({
      registration: 'first_account',
    });

    // The gateway's own page does.
    await page.goto(gateway.url);
    expect(await page.evaluate(ask, [REGISTER, OURS])).toBe(201);
  });
});
