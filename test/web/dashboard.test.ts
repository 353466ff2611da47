import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { BROWSER_PATH, NO_BROWSER, openBrowser } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { ADMIN_KEY, startTestGateway, type TestGateway } from '../support/gateway.ts';

if (BROWSER_PATH === undefined) console.warn(`the tests of the dashboard are skipped: ${NO_BROWSER}`);

describe.skipIf(BROWSER_PATH === undefined)('the dashboard', () => {
  let gateway: TestGateway;
  let browser: Browser;
  beforeAll(async () => { [gateway, browser] = await Promise.all([startTestGateway(), openBrowser()]); });
  afterAll(async () => {
    await browser?.close();
    await gateway?.stop();
  });

  test('an operator signs in with a key, of which the browser keeps nothing', async () => {
    const page = await signedIn();
    expect(await page.getByRole('navigation').getByRole('link').allTextContents()).toEqual(['Operations', 'Agents', 'Audit', 'Budgets', 'Policies', 'Keys']);
    const kept = await page.evaluate('JSON.stringify([Object.entries(localStorage), Object.entries(sessionStorage), document.cookie, document.documentElement.outerHTML, location.href])');
    expect(kept).not.toContain(ADMIN_KEY);
    await page.reload();
    await page.getByText('Live', { exact: true }).waitFor();
  });

  test('a wrong key is refused in words, and the form stays', async () => {
    const page = await openPage();
    await page.getByLabel('API key').fill('svc_wrong_key');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').getByText('This API key is not known here').waitFor();
    await page.getByLabel('API key').fill('schlüssel mit leerzeichen');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').getByText('This is not an API key').waitFor();
  });

  test('an operation appears when its agent asks, and is paused, resumed and terminated from its row', async () => {
    const page = await signedIn();
    const check = await agent('acme', 'search', 'crawler');
    await check('live-1');
    const row = rowOf(page, 'live-1:s');
    await stateOf(row, 'running');
    expect(await row.textContent()).toContain('acme / search / crawler');
    await row.getByRole('button', { name: 'Pause' }).click();
    await stateOf(row, 'paused');
    expect((await gateway.call('GET', '/api/v1/ops/live-1:s')).body.state).toBe('paused');
    await row.getByRole('button', { name: 'Resume' }).click();
    await stateOf(row, 'running');
    await row.getByRole('button', { name: 'Terminate' }).click();
    const dialog = page.getByRole('dialog');
    expect(await dialog.textContent()).toContain('live-1:s');
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    expect((await gateway.call('GET', '/api/v1/ops/live-1:s')).body.state).toBe('running');
    await row.getByRole('button', { name: 'Terminate' }).click();
    await dialog.getByRole('button', { name: 'Terminate' }).click();
    await stateOf(row, 'terminated');
    expect(await row.getByRole('button').count()).toBe(0);
    expect((await gateway.call('GET', '/api/v1/ops/live-1:s')).body.state).toBe('terminated');
  });

  test('what the gateway refuses is taken back, and the operator is told why', async () => {
    const page = await signedIn();
    await (await agent('acme', 'search', 'late'))('late-1');
    const row = rowOf(page, 'late-1:s');
    await stateOf(row, 'running');
    await page.route('**/api/v1/ops/*/pause', (route) => route.fulfill({ status: 409, contentType: 'application/problem+json', body: JSON.stringify({ detail: 'cannot pause it now', code: 'invalid_transition' }) }));
    await row.getByRole('button', { name: 'Pause' }).click();
    await page.getByText('cannot pause it now').waitFor();
    await stateOf(row, 'running');
  });

  test('names are shown as they are, whatever markup they hold', async () => {
    const page = await signedIn();
    const image = '<img/src=x/onerror=alert(1)>';
    await (await agent('acme', '<b>team', '<script>alert(1)<'))(image, '<img src=x onerror=alert(1)>');
    await rowOf(page, `${image}:s`).getByText('acme / <b>team / <script>alert(1)<').waitFor();
    await gateway.call('POST', '/api/v1/iam/api-keys', { name: '<img src=x onerror=alert(1)>', scopes: ['read'] });
    for (const [view, text] of [['Agents', '<script>alert(1)<'], ['Audit', '<img src=x onerror=alert(1)>'], ['Keys', '<img src=x onerror=alert(1)>']] as const) {
      await page.getByRole('link', { name: view, exact: true }).click();
      await page.getByText(text).first().waitFor();
      expect(await page.locator('main img, main script, main b').count()).toBe(0);
    }
  });

  test('a key of one org sees its own operations and agents only, and one that may only read has no buttons', async () => {
    const { body } = await gateway.call('POST', '/api/v1/iam/api-keys', { name: 'watcher', scopes: ['read'], org_id: 'globex' });
    const page = await signedIn(body.key);
    await (await agent('acme', 'search', 'elsewhere'))('foreign-1');
    await (await agent('globex', 'support', 'triage'))('own-1');
    await stateOf(rowOf(page, 'own-1:s'), 'running');
    expect(await rowOf(page, 'foreign-1:s').count()).toBe(0);
    expect(await rowOf(page, 'own-1:s').getByRole('button').count()).toBe(0);
    expect(await page.getByRole('navigation').getByRole('link').allTextContents()).toEqual(['Operations', 'Agents', 'Audit', 'Budgets', 'Policies']);
    await page.getByRole('link', { name: 'Agents' }).click();
    await page.getByRole('cell', { name: 'globex / support / triage' }).waitFor();
    expect(await page.getByText('acme').count()).toBe(0);
    expect(await page.getByRole('button', { name: 'Register agent' }).count()).toBe(0);
  });

  test('operations are found by text, org and state', async () => {
    const page = await signedIn();
    await (await agent('acme', 'search', 'finder'))('find-a');
    await (await agent('initech', 'ops', 'seeker'))('find-b');
    await gateway.call('POST', '/api/v1/ops/find-b:s/pause');
    await stateOf(rowOf(page, 'find-b:s'), 'paused');
    const shown = () => page.locator('tr[data-op^="find-"]').evaluateAll((rows: { dataset: { op: string } }[]) => rows.map((row) => row.dataset.op));
    await page.getByLabel('Search').fill('find seeker');
    await eventually(async () => expect(await shown()).toEqual(['find-b:s']));
    await page.getByLabel('Search').fill('find-');
    await page.getByLabel('Org').fill('acme');
    await eventually(async () => expect(await shown()).toEqual(['find-a:s']));
    await page.getByLabel('Org').fill('');
    await page.getByLabel('State').selectOption('paused');
    await eventually(async () => expect(await shown()).toEqual(['find-b:s']));
  });

  test('the orgs that have operations are offered to choose from, as they come', async () => {
    const fresh = await startTestGateway();
    onTestFinished(async () => { await fresh.stop(); });
    const start = (org: string) => fresh.call('POST', '/api/v1/ops', { op_id: `${org}:s`, agent: { org_id: org, team_id: 't', agent_id: 'a' } });
    await start('zeta');
    const page = await signedIn(ADMIN_KEY, fresh.url);
    const offered = () => page.locator('datalist option').evaluateAll((options: { value: string }[]) => options.map(({ value }) => value));
    await eventually(async () => expect(await offered()).toEqual(['zeta']));
    expect(await page.getByLabel('Org').getAttribute('list')).toBe(await page.locator('datalist').getAttribute('id'));
    await start('alpha');
    await eventually(async () => expect(await offered()).toEqual(['alpha', 'zeta']));
  });

  test('of thousands of operations only those in view are drawn, and the last can be reached', async () => {
    const crowd = await startTestGateway();
    onTestFinished(async () => { await crowd.stop(); });
    const total = 3_000;
    for (let from = 0; from < total; from += 100) {
      await Promise.all(Array.from({ length: 100 }, (_, index) => crowd.call('POST', '/api/v1/ops', { op_id: `crowd-${from + index}:s`, agent: { org_id: 'acme', team_id: 't', agent_id: 'a' } })));
    }
    const page = await signedIn(ADMIN_KEY, crowd.url);
    await page.getByText('3,000 operations').waitFor();
    expect(await page.locator('tr[data-op]').count()).toBeLessThan(60);
    await page.getByRole('region', { name: 'Operations in flight' }).evaluate((region: { scrollTop: number; scrollHeight: number }) => { region.scrollTop = region.scrollHeight; });
    await eventually(async () => expect(await page.locator('tr[data-op="crowd-0:s"]').count()).toBe(1));
    expect(await page.locator('tr[data-op]').count()).toBeLessThan(60);
  }, 60_000);

  test('a stream that has lost events is opened again for a new snapshot', async () => {
    const page = await openPage();
    let opened = 0;
    await page.routeWebSocket(/\/api\/v1\/stream/, (socket) => {
      opened += 1;
      const server = socket.connectToServer();
      server.onMessage((message) => { if (opened > 1) socket.send(message); });
      if (opened === 1) setTimeout(() => socket.send('{"event_type":"lagged","payload":{"dropped":7}}'), 300);
    });
    await (await agent('acme', 'search', 'lagging'))('lagged-1');
    await page.getByLabel('API key').fill(ADMIN_KEY);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await rowOf(page, 'lagged-1:s').waitFor();
    expect(opened).toBe(2);
  });

  test('a finished operation is shown for as long as the gateway keeps it', async () => {
    const patient = await startTestGateway({ env: { SVC_OPS_TTL_SECS: '300' } });
    onTestFinished(async () => { await patient.stop(); });
    const page = await openPage(patient.url);
    await page.clock.install();
    await signIn(page, ADMIN_KEY);
    await patient.call('POST', '/api/v1/ops', { op_id: 'brief-1:s', agent: { org_id: 'acme', team_id: 't', agent_id: 'a' } });
    await patient.call('POST', '/api/v1/ops/brief-1:s/terminate');
    await eventually(async () => {
      await page.clock.runFor(200);
      expect(await rowOf(page, 'brief-1:s').getByText('terminated').count()).toBe(1);
    });
    await page.clock.runFor(290_000);
    expect(await rowOf(page, 'brief-1:s').count()).toBe(1);
    await page.clock.runFor(15_000);
    expect(await rowOf(page, 'brief-1:s').count()).toBe(0);
  });

  test('until the snapshot has come, nobody is told that nothing is in flight', async () => {
    const page = await openPage();
    let release = (): void => {};
    await page.routeWebSocket(/\/api\/v1\/stream/, (socket) => {
      let held: (string | Buffer)[] | undefined = [];
      release = () => {
        for (const message of held ?? []) socket.send(message);
        held = undefined;
      };
      socket.connectToServer().onMessage((message) => { if (held === undefined) socket.send(message); else held.push(message); });
    });
    await (await agent('acme', 'search', 'slow'))('slow-1');
    await page.getByLabel('API key').fill(ADMIN_KEY);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('Live', { exact: true }).waitFor();
    await page.getByText('Reading what is in flight …').waitFor();
    release();
    await rowOf(page, 'slow-1:s').waitFor();
    await page.getByText('Reading').waitFor({ state: 'detached' });
  });

  test('a name that is written from right to left does not change places with the names beside it', async () => {
    const page = await signedIn();
    await (await agent('مؤسسة', 'فريق', 'وكيل'))('rtl-1');
    const names = rowOf(page, 'rtl-1:s').getByRole('cell').nth(1).locator('bdi');
    await names.first().waitFor();
    expect(await names.allTextContents()).toEqual(['مؤسسة', 'فريق', 'وكيل']);
    const [org, team, last] = await leftsOf(names);
    expect(org).toBeLessThan(team!);
    expect(team).toBeLessThan(last!);
  });

  test('names keep their places in budgets too, and a long one is broken only where it must be on a narrow screen', async () => {
    const page = await signedIn();
    await page.setViewportSize({ width: 400, height: 800 });
    const long = 'a-name-that-does-not-fit-on-one-line-of-a-narrow-screen';
    await gateway.call('POST', '/api/v1/usage', { agent: { org_id: 'ארגון', team_id: 'צוות', agent_id: 'סוכן' }, cost_usd: 1 });
    await agent('narrow', long, long);
    await page.getByRole('link', { name: 'Budgets' }).click();
    const [org, team, last] = await leftsOf(page.locator('tr:has-text("סוכן") bdi'));
    expect(org).toBeLessThan(team!);
    expect(team).toBeLessThan(last!);
    await page.getByRole('link', { name: 'Agents' }).click();
    const name = page.locator('tr:has-text("narrow") bdi').first();
    expect((await name.boundingBox())?.height).toBeLessThan(30); // one line of it
  });

  test('an operation leads to what the audit log says of it, and who paused it', async () => {
    const page = await signedIn();
    await (await agent('acme', 'search', 'traced'))('traced-1');
    await gateway.call('POST', '/api/v1/ops/traced-1:s/pause');
    await rowOf(page, 'traced-1:s').getByRole('link', { name: 'traced-1:s' }).click();
    await page.getByRole('button', { name: /^OpPaused/ }).click();
    const entry = await page.getByRole('dialog').textContent();
    expect(entry).toContain('"op_id": "traced-1:s"');
    expect(entry).toContain('"actor": "key:');
  });

  test('the controls have names, and the keyboard alone is enough to pause, resume and terminate an operation', async () => {
    const page = await signedIn();
    await (await agent('acme', 'search', 'typed'))('typed-1');
    await stateOf(rowOf(page, 'typed-1:s'), 'running');
    await page.getByLabel('Search').focus();
    await page.keyboard.type('typed-1');
    for (const [role, name] of [['combobox', 'Org'], ['combobox', 'State'], ['region', 'Operations in flight'], ['link', 'typed-1:s'], ['button', 'Pause typed-1:s']] as const) {
      await page.keyboard.press('Tab');
      await focusOn(page.getByRole(role, { name }));
    }
    await page.keyboard.press('Enter');
    await stateOf(rowOf(page, 'typed-1:s'), 'paused');
    await focusOn(page.getByRole('button', { name: 'Resume typed-1:s' }));
    await page.keyboard.press('Enter');
    await stateOf(rowOf(page, 'typed-1:s'), 'running');
    await focusOn(page.getByRole('button', { name: 'Pause typed-1:s' }));
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await focusOn(page.getByRole('dialog').getByRole('button', { name: 'Cancel' }));
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await stateOf(rowOf(page, 'typed-1:s'), 'terminated');
    await focusOn(page.getByRole('link', { name: 'typed-1:s' }));
  });

  test('the keyboard goes on from where it was: behind a dialog, in a list that was read anew, and where a link has led', async () => {
    const page = await signedIn();
    for (const name of ['stays', 'goes']) await agent('acme', 'focus', name);
    await page.getByRole('link', { name: 'Agents' }).click();
    await page.getByRole('button', { name: 'Register agent' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').getByLabel('Team').fill('focus');
    await page.getByRole('dialog').getByLabel('Agent', { exact: true }).fill('made');
    await page.getByRole('dialog').getByRole('button', { name: 'Register' }).click();
    await page.getByRole('button', { name: 'Done' }).press('Enter');
    await focusOn(page.getByRole('button', { name: 'Register agent' }));
    await page.getByRole('button', { name: 'New token for acme / focus / stays' }).press('Enter');
    await page.getByRole('dialog').getByRole('button', { name: 'New token' }).press('Enter');
    await page.getByRole('button', { name: 'Done' }).press('Enter');
    await focusOn(page.getByRole('button', { name: 'New token for acme / focus / stays' }));
    const remove = page.getByRole('button', { name: 'Remove acme / focus / goes' });
    await remove.press('Enter');
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).press('Enter');
    await remove.waitFor({ state: 'detached' });
    await focusOn(page.locator('tbody button:focus'));
    await (await agent('acme', 'focus', 'asks'))('focus-1');
    await page.getByRole('link', { name: 'Operations' }).click();
    await rowOf(page, 'focus-1:s').getByRole('link').press('Enter');
    await focusOn(page.getByRole('main'));
  });

  test('a form that was refused keeps the keyboard where it was', async () => {
    const page = await openPage();
    await page.getByLabel('API key').fill('svc_wrong_key');
    await page.getByLabel('API key').press('Enter');
    await page.getByRole('alert').getByText('not known here').waitFor();
    await focusOn(page.getByLabel('API key'));
    await signIn(page, ADMIN_KEY);
    await page.getByRole('link', { name: 'Agents' }).click();
    await page.getByRole('button', { name: 'Register agent' }).press('Enter');
    await page.getByRole('dialog').getByLabel('Team').fill('a/b');
    await page.getByRole('dialog').getByLabel('Agent', { exact: true }).fill('refused');
    const register = page.getByRole('dialog').getByRole('button', { name: 'Register' });
    await register.press('Enter');
    await page.getByRole('alert').getByText('team').waitFor();
    await focusOn(register);
  });

  test('a notice moves nothing, and covers nothing that can be clicked', async () => {
    for (let index = 0; index < 30; index += 1) await agent('acme', 'crowded', `n${index}`);
    const page = await signedIn();
    await page.setViewportSize({ width: 1000, height: 600 });
    await page.getByRole('link', { name: 'Agents' }).click();
    const rowTops = () => page.locator('tbody tr').evaluateAll((rows: { getBoundingClientRect(): { top: number } }[]) => rows.map((row) => row.getBoundingClientRect().top));
    await page.getByRole('button', { name: 'Remove acme / crowded / n29' }).waitFor();
    const before = await rowTops();
    await page.route('**/api/v1/agents?*', (route) => route.fulfill({ status: 500, contentType: 'application/problem+json', body: '{"detail":"out of order"}' }));
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.getByText('Out of order').waitFor();
    expect(await rowTops()).toEqual(before);
    const covered = `(() => {
      const frame = document.getElementById('app').getBoundingClientRect();
      const buttons = [...document.querySelectorAll('main button')].map((button) => [button, button.getBoundingClientRect()]);
      const inView = buttons.filter(([, { width, top, bottom }]) => width > 0 && top >= frame.top && bottom <= frame.bottom && bottom <= innerHeight);
      return { inView: inView.length, covered: inView.filter(([button, { left, right, top, bottom }]) => document.elementFromPoint((left + right) / 2, (top + bottom) / 2) !== button).length };
    })()`;
    const seen = await page.evaluate(covered) as { inView: number; covered: number };
    expect(seen.covered).toBe(0);
    expect(seen.inView).toBeGreaterThan(10);
  });

  test('what could not be read while the network was away is read by itself when it is back', async () => {
    await agent('acme', 'search', 'waited-for');
    const page = await signedIn();
    await page.context().setOffline(true);
    await page.getByText('Connection lost').waitFor();
    for (const [view, label] of [['Policies', 'starter'], ['Keys', 'yours'], ['Agents', 'waited-for']] as const) {
      await page.getByRole('link', { name: view, exact: true }).click();
      await page.getByText('This is read when the connection is back, or with Refresh.').waitFor();
      await page.context().setOffline(false);
      await page.getByRole('main').getByText(label, { exact: true }).waitFor();
      await page.getByText('Live', { exact: true }).waitFor();
      await page.context().setOffline(true);
      await page.getByText('Connection lost').waitFor();
    }
  });

  test('a notice stays for as long as somebody points at it', async () => {
    const page = await openPage();
    await page.clock.install();
    await signIn(page, ADMIN_KEY);
    await page.getByRole('link', { name: 'Policies' }).click();
    await page.getByRole('button', { name: 'Reload files' }).click();
    const notice = page.getByText('The files say what is in force already.');
    await notice.hover();
    await page.clock.fastForward(60_000);
    expect(await notice.count()).toBe(1);
    await page.mouse.move(0, 0);
    await page.clock.fastForward(60_000);
    await notice.waitFor({ state: 'detached' });
  });

  test('a network that is gone is told at once, and a line that was cut far away as soon as it is missed', async () => {
    const page = await openPage();
    await page.clock.install();
    await signIn(page, ADMIN_KEY);
    await page.context().setOffline(true);
    await page.getByText('Connection lost').waitFor();
    await page.context().setOffline(false);
    await page.getByText('Live', { exact: true }).waitFor();
    await page.route('**/healthz', (route) => route.abort());
    await page.route('**/ws-ticket', (route) => route.abort());
    await page.clock.fastForward(40_000);
    await page.getByText('Connection lost').waitFor();
    await page.unroute('**/ws-ticket');
    await page.getByRole('button', { name: 'retry' }).click();
    await page.getByText('Live', { exact: true }).waitFor();
  });

  test('after a restart of the gateway the stream comes back, and shows what is there now', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-dashboard-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const options = { dataDir: folder, env: { SVC_HTTP_ADDR: `127.0.0.1:${await freePort()}` } };
    const first = await startTestGateway(options);
    const page = await signedIn(ADMIN_KEY, first.url);
    const owner = { org_id: 'acme', team_id: 't', agent_id: 'a' };
    await first.call('POST', '/api/v1/ops', { op_id: 'before:s', agent: owner });
    await rowOf(page, 'before:s').waitFor();
    await first.stop();
    await page.getByText('Connection lost').waitFor();
    await page.getByText('as it was when the connection was lost').waitFor();
    const second = await startTestGateway(options);
    onTestFinished(async () => { await second.stop(); });
    await second.call('POST', '/api/v1/ops', { op_id: 'after:s', agent: owner });
    await page.getByText('Live', { exact: true }).waitFor();
    await rowOf(page, 'after:s').waitFor();
    expect(await rowOf(page, 'before:s').count()).toBe(0);
  }, 60_000);

  test('a key that is made is shown once, and one that is revoked signs its user out', async () => {
    const page = await signedIn();
    await page.getByRole('link', { name: 'Keys' }).click();
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByLabel('Name').fill('short-lived');
    await page.getByRole('dialog').getByRole('button', { name: 'Create' }).click();
    const key = await page.getByRole('dialog', { name: 'The new API key' }).getByRole('status').textContent() ?? '';
    expect(key).toMatch(/^svc_/);
    await page.getByRole('button', { name: 'Done' }).click();
    await page.locator('dialog').waitFor({ state: 'detached' });
    expect(await page.content()).not.toContain(key);
    const other = await signedIn(key);
    await page.getByRole('button', { name: 'Revoke short-lived' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await other.getByText('Your session has ended').waitFor();
    await other.getByLabel('API key').waitFor();
  });

  test('the audit log follows what happens', async () => {
    const page = await signedIn();
    await page.getByRole('link', { name: 'Audit' }).click();
    await page.getByLabel('Event').selectOption('ActionDenied');
    await (await agent('acme', 'search', 'denied'))('followed-1', 'launch_rocket');
    await page.getByText('no policy allows tool.call on launch_rocket for acme/search/denied').waitFor();
  });

  /** A page of its own, in which any error and any dialog of a script fails the test. */
  async function openPage(url = gateway.url): Promise<Page> {
    const context = await browser.newContext();
    const page = await context.newPage();
    const surprises: string[] = [];
    page.on('pageerror', (error) => surprises.push(String(error)));
    page.on('dialog', (dialog) => { surprises.push(`dialog: ${dialog.message()}`); void dialog.dismiss(); });
    page.on('console', (message) => { if (/Content Security Policy/.test(message.text())) surprises.push(message.text()); });
    onTestFinished(async () => {
      await context.close();
      expect(surprises).toEqual([]);
    });
    page.setDefaultTimeout(15_000);
    await page.goto(url);
    return page;
  }

  async function signedIn(key = ADMIN_KEY, url = gateway.url): Promise<Page> {
    const page = await openPage(url);
    await signIn(page, key);
    return page;
  }

  /** Registers an agent, and returns a function by which it asks whether it may call a tool. */
  async function agent(org: string, team: string, name: string) {
    const { body } = await gateway.call('POST', '/api/v1/agents', { agent: { org_id: org, team_id: team, agent_id: name } });
    return async (trace: string, resource = 'web_search') => {
      const { status } = await gateway.call('POST', '/svc.governance.v1.PolicyService/CheckAction', {
        agent: { orgId: org, teamId: team, agentId: name }, credentialToken: body.credential_token, traceId: trace, spanId: 's', action: 'tool.call', resource,
      }, null);
      expect(status).toBe(200);
    };
  }
});

async function signIn(page: Page, key: string): Promise<void> {
  await page.getByLabel('API key').fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('Live', { exact: true }).waitFor();
}

const rowOf = (page: Page, opId: string): Locator => page.locator(`tr[data-op=${JSON.stringify(opId)}]`);

const stateOf = (row: Locator, state: string): Promise<void> => row.getByText(state, { exact: true }).waitFor();

const leftsOf = async (elements: Locator): Promise<readonly number[]> => {
  await elements.first().waitFor();
  return elements.evaluateAll((found: { getBoundingClientRect(): { left: number } }[]) => found.map((element) => element.getBoundingClientRect().left));
};

const focusOn = (control: Locator): Promise<void> =>
  eventually(async () => expect(await control.evaluate((element) => element === (element as { ownerDocument?: { activeElement: unknown } }).ownerDocument?.activeElement)).toBe(true));
