import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { BROWSER_PATH, NO_BROWSER } from '../support/browser.ts';
import { rowOf, signIn, useDashboard } from '../support/dashboard.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { ADMIN_KEY, startTestGateway } from '../support/gateway.ts';

if (BROWSER_PATH === undefined)
  console.warn(`the tests of notices and the line of the dashboard are skipped: ${NO_BROWSER}`);

describe.skipIf(BROWSER_PATH === undefined)('notices and the connection state of the dashboard', () => {
  const { agent, openPage, signedIn, underClock } = useDashboard();

  test('a notice moves nothing, and covers nothing that can be clicked', async () => {
    for (let index = 0; index < 30; index += 1) await agent('acme', 'crowded', `n${index}`);
    const page = await signedIn();
    await page.setViewportSize({ width: 1000, height: 600 });
    await page.getByRole('link', { name: 'Agents' }).click();
    const rowTops = () =>
      page
        .locator('tbody tr')
        .evaluateAll((rows: { getBoundingClientRect(): { top: number } }[]) =>
          rows.map((row) => row.getBoundingClientRect().top),
        );
    await page.getByRole('button', { name: 'Remove acme / crowded / n29' }).waitFor();
    const before = await rowTops();
    await page.route('**/api/v1/agents?*', (route) =>
      route.fulfill({ status: 500, contentType: 'application/problem+json', body: '{"detail":"out of order"}' }),
    );
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.getByText('Out of order').waitFor();
    expect(await rowTops()).toEqual(before);
    const covered = `(() => {
      const frame = document.getElementById('app').getBoundingClientRect();
      const buttons = [...document.querySelectorAll('main button')].map((button) => [button, button.getBoundingClientRect()]);
      const inView = buttons.filter(([, { width, top, bottom }]) => width > 0 && top >= frame.top && bottom <= frame.bottom && bottom <= innerHeight);
      return { inView: inView.length, covered: inView.filter(([button, { left, right, top, bottom }]) => document.elementFromPoint((left + right) / 2, (top + bottom) / 2) !== button).length };
    })()`;
    const seen = (await page.evaluate(covered)) as { inView: number; covered: number };
    expect(seen.covered).toBe(0);
    expect(seen.inView).toBeGreaterThan(10);
  });

  test('gateways that have not confirmed an order are named in a notice', async () => {
    await agent('acme', 'search', 'unconfirmed');
    const page = await signedIn();
    await page.getByRole('link', { name: 'Agents' }).click();
    const path = '**/api/v1/agents/acme/search/unconfirmed';
    await page.route(path, (route) => route.fulfill({ status: 204, headers: { 'svc-unconfirmed': 'two, database' } }));
    await page.getByRole('button', { name: 'Remove acme / search / unconfirmed' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await page.getByText('two did not confirm this in time, and will follow on reaching the database again.').waitFor();
    await page.getByText('it will hold at all gateways once this is written there.').waitFor();
    await page.unroute(path);
  });

  test('what could not be read during an outage of the network is read afterwards', async () => {
    await agent('acme', 'search', 'waited-for');
    const page = await signedIn();
    await page.context().setOffline(true);
    await page.getByText('Connection lost').waitFor();
    for (const [view, label] of [
      ['Policies', 'starter'],
      ['Keys', 'yours'],
      ['Agents', 'waited-for'],
    ] as const) {
      await page.getByRole('link', { name: view, exact: true }).click();
      await page.getByText('The list loads when the connection is back. Press Refresh to try now.').waitFor();
      await page.context().setOffline(false);
      await page.getByRole('main').getByText(label, { exact: true }).waitFor();
      await page.getByText('Live', { exact: true }).waitFor();
      await page.context().setOffline(true);
      await page.getByText('Connection lost').waitFor();
    }
    await page.context().setOffline(false);
  });

  test('a failed view is read again by itself, a refused one is not', async () => {
    const page = await underClock();
    let asked = 0;
    const answerWith = async (status: number) => {
      asked = 0;
      await page.route('**/api/v1/policies?*', (route) => {
        asked += 1;
        return route.fulfill({ status, contentType: 'application/problem+json', body: '{"detail":"out of order"}' });
      });
    };
    await answerWith(503);
    // Until the notice has been dismissed no time passes, or it would go by itself.
    await page.clock.pauseAt(Number(await page.evaluate('Date.now()')) + 60_000);
    await page.getByRole('link', { name: 'Policies' }).click();
    await page.getByText('Retrying…').waitFor();
    await page.getByText('Out of order').waitFor();
    await page.getByRole('button', { name: 'Dismiss' }).click();
    await page.clock.resume();
    await eventually(() => expect(asked).toBeGreaterThan(2));
    expect(await page.getByText('Out of order').count()).toBe(0); // said once, not at every attempt
    await page.unroute('**/api/v1/policies?*');
    await page.getByRole('main').getByText('starter', { exact: true }).waitFor();

    await page.getByRole('link', { name: 'Keys' }).click();
    await answerWith(403);
    await page.getByRole('link', { name: 'Policies' }).click();
    await page.getByText('Press Refresh to try again.').waitFor();
    await page.clock.fastForward(60_000);
    await page.getByRole('link', { name: 'Budgets' }).click();
    await page.getByRole('table', { name: 'Budgets' }).waitFor();
    expect(asked).toBe(1);
  });

  test('a notice stays while it is pointed at, and until the page is visible', async () => {
    const page = await underClock();
    await page.getByRole('link', { name: 'Policies' }).click();
    await page.getByRole('button', { name: 'Reload files' }).waitFor();
    // From here on it is away only when the test lets time pass, however long it takes to point at it.
    await page.clock.pauseAt(Number(await page.evaluate('Date.now()')) + 60_000);
    await page.getByRole('button', { name: 'Reload files' }).click();
    const notice = page.getByText('Policies reloaded: nothing has changed.');
    await notice.hover();
    await page.clock.fastForward(60_000);
    expect(await notice.count()).toBe(1);
    await page.mouse.move(0, 0);
    // Nor does it go while the page is behind another: what has taken minutes is not missed.
    const turn = (isHidden: boolean) =>
      page.evaluate(
        `Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true }); document.dispatchEvent(new Event('visibilitychange'))`,
      );
    await turn(true);
    await page.clock.fastForward(60_000);
    expect(await notice.count()).toBe(1);
    await turn(false);
    await page.clock.fastForward(60_000);
    await notice.waitFor({ state: 'detached' });
  });

  test('a budget notice names its owner, its period and its percentage', async () => {
    const page = await openPage();
    let send = (_frame: object): void => {};
    await page.routeWebSocket(/\/api\/v1\/stream/, (socket) => {
      socket.connectToServer();
      send = (frame) => socket.send(JSON.stringify(frame));
    });
    await signIn(page, ADMIN_KEY);
    send({
      event_type: 'budget',
      org_id: 'acme',
      agent_id: null,
      payload: { tier: 'team', team_id: 'search', period: 'daily', percent: 80 },
    });
    send({
      event_type: 'budget',
      org_id: null,
      agent_id: null,
      payload: { tier: 'global', period: 'monthly', percent: 100 },
    });
    await eventually(async () =>
      expect(await page.locator('#notices .notice').allTextContents()).toEqual([
        'The daily budget of acme / search is 80% used×',
        'The global monthly budget is 100% used×',
      ]),
    );
  });

  test('a repeated notice is counted, displaces no other and is not announced again', async () => {
    const page = await openPage();
    await page.clock.install();
    let send = (_frame: object): void => {};
    await page.routeWebSocket(/\/api\/v1\/stream/, (socket) => {
      socket.connectToServer();
      send = (frame) => socket.send(JSON.stringify(frame));
    });
    await signIn(page, ADMIN_KEY);
    await page.getByRole('link', { name: 'Policies' }).click();
    await page.getByRole('button', { name: 'Reload files' }).waitFor();
    // From here on no notice goes by itself, however long the rest takes.
    await page.clock.pauseAt(Number(await page.evaluate('Date.now()')) + 60_000);
    await page.getByRole('button', { name: 'Reload files' }).click();
    await page.getByText('Policies reloaded: nothing has changed.').waitFor();
    const violation = (name: string) =>
      send({
        event_type: 'violation',
        org_id: 'acme',
        agent_id: name,
        payload: { team_id: 'search', reason: 'the token is not its own' },
      });
    for (let index = 0; index < 50; index += 1) violation('thief');
    violation('other');
    const notices = page.locator('#notices');
    await eventually(async () =>
      expect(await notices.locator('.notice').allTextContents()).toEqual([
        'Policies reloaded: nothing has changed.×',
        'Violation by acme / search / thief: the token is not its own50 times×',
        'Violation by acme / search / other: the token is not its own×',
      ]),
    );
    expect(await notices.getAttribute('aria-atomic')).toBe('false');
    expect(await notices.getByText('50 times').getAttribute('aria-live')).toBe('off');
    await page.clock.fastForward(60_000);
    await notices.locator('.notice').first().waitFor({ state: 'detached' });
    violation('thief');
    await notices.getByText('Violation by acme / search / thief').waitFor();
    expect(await notices.getByText('times').count()).toBe(0);
  });

  test('a lost network is reported at once, a cut connection once it is missed', async () => {
    const page = await underClock();
    await page.context().setOffline(true);
    await page.getByText('Connection lost').waitFor();
    await page.context().setOffline(false);
    await page.getByText('Live', { exact: true }).waitFor();
    await page.route('**/healthz', (route) => route.abort());
    await page.route('**/ws-ticket', (route) => route.abort());
    await page.clock.fastForward(40_000);
    await page.getByText('Connection lost').waitFor();
    // From here on nothing is tried again by itself.
    await page.clock.pauseAt(Number(await page.evaluate('Date.now()')) + 60_000);
    const retry = page.getByRole('button', { name: 'Retry' });
    // What was tried last has failed, too: let through, it would bring the line back without the button.
    await retry.waitFor();
    await page.unroute('**/ws-ticket');
    await retry.click();
    await page.getByText('Live', { exact: true }).waitFor();
  });

  test('an unanswered request is sent again: lists stay current and the line recovers', async () => {
    const page = await underClock();
    const forgetFirst = async (url: string) => {
      let asked = 0;
      await page.route(url, (route) => {
        asked += 1;
        return asked === 1 ? undefined : route.continue();
      });
    };
    await forgetFirst('**/api/v1/auth/ws-ticket');
    await page.context().setOffline(true);
    await page.getByText('Connection lost').waitFor();
    await page.context().setOffline(false);
    await page.getByText('Connecting…').waitFor();
    await page.clock.fastForward(70_000);
    await page.getByText('Live', { exact: true }).waitFor();
    await forgetFirst('**/api/v1/budgets?*');
    await page.getByRole('link', { name: 'Budgets' }).click();
    await page.getByText('Loading…').waitFor();
    await page.clock.fastForward(70_000);
    await page.getByText('The gateway did not respond in time.').waitFor();
    await page.getByRole('cell', { name: 'All orgs' }).waitFor();
  });

  test('a stream that does not open is dropped and opened again', async () => {
    const page = await underClock();
    await page.evaluate(`{
      const Real = WebSocket;
      WebSocket = function () {
        WebSocket = Real;
        return { close() { this.onclose({ code: 1006 }); } };
      };
    }`);
    await page.context().setOffline(true);
    await page.getByText('Connection lost').waitFor();
    await page.context().setOffline(false);
    await page.getByText('Connecting…').waitFor();
    await page.clock.fastForward(25_000);
    await page.clock.fastForward(5_000);
    await page.getByText('Live', { exact: true }).waitFor();
  });

  test('a change cut off midway is reported as possibly made, a list requested again', async () => {
    const page = await signedIn();
    await page.evaluate(`{
      const { text } = Response.prototype;
      const left = ['/api/v1/policies?', '/api/v1/policies/reload'];
      Response.prototype.text = function () {
        const at = left.findIndex((path) => this.url.includes(path));
        if (at === -1) return text.call(this);
        left.splice(at, 1);
        return Promise.reject(new TypeError('Failed to fetch'));
      };
    }`);
    await page.getByRole('link', { name: 'Policies' }).click();
    await page.getByText('The response was cut off. Try again.').waitFor();
    await page.getByRole('cell', { name: 'starter', exact: true }).waitFor();
    await page.getByRole('button', { name: 'Reload files' }).click();
    await page
      .getByText('The response was cut off. The change may still have been made: check before you try again.')
      .waitFor();
  });

  test('a laptop that slept shows the current state, although its old line looks open', async () => {
    const page = await openPage();
    await page.clock.install();
    let opened = 0;
    // The gateway has given up the first line meanwhile, and its word of that was lost.
    await page.routeWebSocket(/\/api\/v1\/stream/, (socket) => {
      opened += 1;
      const server = socket.connectToServer();
      if (opened === 1) server.onMessage(() => undefined);
    });
    await signIn(page, ADMIN_KEY);
    await (await agent('acme', 'search', 'sleeper'))('slept-1');
    await page.clock.fastForward(30 * 60_000);
    await rowOf(page, 'slept-1:s').waitFor();
    expect(opened).toBe(2);
  });

  test('after a restart of the gateway the stream returns, and a list continues', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-dashboard-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const options = { dataDir: folder, env: { SVC_HTTP_ADDR: `127.0.0.1:${await freePort()}` } };
    const first = await startTestGateway(options);
    await Promise.all(
      Array.from({ length: 110 }, (_, index) =>
        first.call('POST', '/api/v1/agents', { agent: { org_id: 'acme', team_id: 't', agent_id: `a${index}` } }),
      ),
    );
    const [page, lists] = [await signedIn(ADMIN_KEY, first.url), await signedIn(ADMIN_KEY, first.url)];
    await lists.getByRole('link', { name: 'Agents' }).click();
    const more = lists.getByRole('button', { name: 'Load more' });
    await more.waitFor();
    const owner = { org_id: 'acme', team_id: 't', agent_id: 'a' };
    await first.call('POST', '/api/v1/ops', { op_id: 'before:s', agent: owner });
    await rowOf(page, 'before:s').waitFor();
    await first.stop();
    for (const each of [page, lists]) await each.getByText('Connection lost').waitFor();
    await page.getByText('as of when the connection was lost').waitFor();
    const second = await startTestGateway(options);
    onTestFinished(async () => {
      await second.stop();
    });
    await second.call('POST', '/api/v1/ops', { op_id: 'after:s', agent: owner });
    for (const each of [page, lists]) await each.getByText('Live', { exact: true }).waitFor();
    await rowOf(page, 'after:s').waitFor();
    expect(await rowOf(page, 'before:s').count()).toBe(0);
    // Its cursor was lost with the first.
    await more.click();
    await eventually(async () => expect(await lists.locator('tbody tr').count()).toBe(110));
    expect(new Set(await lists.locator('tbody td:first-child').allTextContents()).size).toBe(110);
    expect(await lists.locator('.notice').allTextContents()).toEqual([]);
  });

  test('existing operations all appear at once, not one first', async () => {
    const page = await openPage();
    let release = (): void => {};
    await page.routeWebSocket(/\/api\/v1\/stream/, (socket) => {
      const held: (string | Buffer)[] = [];
      let [isFirst, isHeld] = [true, true];
      release = () => {
        isHeld = false;
        for (const message of held.splice(0)) socket.send(message);
      };
      socket.connectToServer().onMessage((message) => {
        if (isFirst || !isHeld) socket.send(message);
        else held.push(message);
        isFirst = false;
      });
    });
    const ask = await agent('acme', 'search', 'before');
    for (let index = 0; index < 6; index += 1) await ask(`before-${index}`);
    await page.clock.install();
    await page.clock.pauseAt(Date.now() + 60_000);
    await signIn(page, ADMIN_KEY);
    const rows = page.locator('tr[data-op]');
    await eventually(async () => {
      await page.clock.runFor(20);
      expect(await rows.count()).toBe(1);
    });
    const before = Number(await page.evaluate('performance.now()'));
    release();
    await eventually(async () => {
      await page.clock.runFor(20);
      expect(await rows.count()).toBeGreaterThanOrEqual(6);
    });
    expect(Number(await page.evaluate('performance.now()')) - before).toBeLessThan(900);
  });

  test('an operation in view is not struck out while a new snapshot is read', async () => {
    const page = await openPage();
    let [isHeld, release] = [false, (): void => {}];
    await page.routeWebSocket(/\/api\/v1\/stream/, (socket) => {
      const held: (string | Buffer)[] = [];
      release = () => {
        for (const message of held.splice(0)) socket.send(message);
      };
      socket.connectToServer().onMessage((message) => {
        if (isHeld) held.push(message);
        else socket.send(message);
      });
    });
    const ask = await agent('acme', 'search', 'watched');
    for (let index = 0; index < 30; index += 1) await ask(`watched-${index}`);
    await signIn(page, ADMIN_KEY);
    await page.setViewportSize({ width: 1000, height: 600 });
    await page.getByLabel('Search').fill('watched-');
    await page.locator('.ops-scroll').evaluate((list: { scrollTop: number }) => {
      list.scrollTop = 200;
    });
    const row = rowOf(page, 'watched-20:s');
    const terminate = row.getByRole('button', { name: 'Terminate' });
    const place = await row.boundingBox();
    isHeld = true;
    // A snapshot that is quiet for seconds counts as whole: how long it is held back must not depend on the machine.
    await page.clock.install();
    await page.clock.pauseAt(Number(await page.evaluate('Date.now()')) + 1_000);
    const drawn = (isDisabled: boolean) =>
      eventually(async () => {
        await page.clock.runFor(20);
        expect(await terminate.getAttribute('aria-disabled')).toBe(String(isDisabled));
      });
    await page.context().setOffline(true);
    await page.getByText('Connection lost').waitFor();
    await page.context().setOffline(false);
    await page.getByText('Live', { exact: true }).waitFor();
    await drawn(true);
    expect(await page.locator('tr.gone').count()).toBe(0);
    expect(await row.boundingBox()).toEqual(place);
    release();
    await drawn(false);
    expect(await page.locator('tr.gone').count()).toBe(0);
  });
});
