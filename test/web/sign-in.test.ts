import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { BROWSER_PATH, NO_BROWSER } from '../support/browser.ts';
import { goTo, holdBack, rowOf, signIn, useDashboard } from '../support/dashboard.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { ADMIN_KEY, startTestGateway } from '../support/gateway.ts';

if (BROWSER_PATH === undefined) console.warn(`the tests of signing in with a key are skipped: ${NO_BROWSER}`);

describe.skipIf(BROWSER_PATH === undefined)('signing in with a key', () => {
  const { agent, gateway, openPage, signedIn } = useDashboard();
  const newKey = async (scopes: readonly string[], org_id?: string): Promise<{ id: string; key: string }> =>
    (await gateway().call('POST', '/api/v1/iam/api-keys', { name: 'a key', scopes, org_id })).body;

  test('shows the overview, outlives a reload, and leaves no key in the browser', async () => {
    const page = await openPage();
    await page.getByRole('textbox', { name: 'API key' }).fill('wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').getByText('unknown, expired or revoked').waitFor();
    await signIn(page, ADMIN_KEY);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    expect(await page.title()).toBe('Overview · svc-gateway');
    await page.reload();
    await page.getByText('Live', { exact: true }).waitFor();
    const kept = await page.evaluate('JSON.stringify([localStorage, sessionStorage, document.cookie])');
    expect(kept).not.toContain(ADMIN_KEY);
  });

  test('asks first at the address of any page, and then shows that page', async () => {
    const page = await openPage(`${gateway().url}/operations?state=running`);
    await signIn(page, ADMIN_KEY);
    await page.getByRole('heading', { name: 'Operations' }).waitFor();
    expect(await page.getByLabel('State').inputValue()).toBe('running');
  });

  test('ends at once when the key is revoked while the page is open', async () => {
    const { id, key } = await newKey(['read']);
    const page = await signedIn(key);
    await gateway().call('POST', `/api/v1/iam/api-keys/${id}/revoke`);
    await page.getByText('Your session has ended because the key expired or was revoked.').waitFor();
    await signIn(page, ADMIN_KEY);
  });

  test('bound to an org sees its own data only, and a read-only one has no buttons', async () => {
    for (const org of ['bound', 'free']) await (await agent(org, 'search', 'crawler'))(`${org}-1`);
    const { key } = await newKey(['read'], 'bound');
    const page = await signedIn(key, `${gateway().url}/operations`);
    await rowOf(page, 'bound-1:s').waitFor();
    expect(await rowOf(page, 'free-1:s').count()).toBe(0);
    expect(
      await page
        .getByRole('main')
        .getByRole('button', { name: /Pause|Terminate|Halt/ })
        .count(),
    ).toBe(0);
    await page.getByRole('banner').getByText('read-only').waitFor();
    await page.getByRole('banner').getByText('bound', { exact: true }).waitFor();
    await goTo(page, '/keys');
    await page.getByText('Only administrators see API keys.').waitFor();
  });

  test('shows nothing of one user to the next, whatever comes late', async () => {
    await (await agent('acme', 'search', 'unseen'))('unseen-1');
    const page = await signedIn(ADMIN_KEY, `${gateway().url}/keys`);
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByRole('dialog').getByLabel('Name').fill('too late');
    const answer = await holdBack(page, '**/api/v1/iam/api-keys');
    await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();
    await answer.asked;
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    const methods = await holdBack(page, '**/api/v1/auth/methods');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await methods.asked;
    expect(await page.getByRole('button', { name: 'Create key' }).count()).toBe(0);
    await methods.release();
    await signIn(page, (await newKey(['read'])).key);
    await answer.release();
    await page.locator('#notices').getByText('The session that started this has ended.').waitFor();
    expect(await page.getByRole('dialog').count()).toBe(0);
  });

  test('says what to do in a browser without storage', async () => {
    const page = await openPage();
    await page.addInitScript(
      `Object.defineProperty(window, 'sessionStorage', { get() { throw new DOMException('Access is denied for this document.', 'SecurityError'); } })`,
    );
    await page.reload();
    await page.getByText('Allow cookies and site data for this address.').waitFor();
  });

  test('goes on after a restart of the gateway, and greys what is old until then', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-dashboard-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const options = { dataDir: folder, env: { SVC_HTTP_ADDR: `127.0.0.1:${await freePort()}` } };
    const first = await startTestGateway(options);
    const owner = { org_id: 'acme', team_id: 'search', agent_id: 'crawler' };
    await first.call('POST', '/api/v1/ops', { op_id: 'before:s', agent: owner });
    const page = await signedIn(ADMIN_KEY, `${first.url}/operations`);
    await rowOf(page, 'before:s').waitFor();
    await first.stop();
    await page.getByText('Connection lost').waitFor();
    await page.getByText('as of when the connection was lost').waitFor();
    const second = await startTestGateway(options);
    onTestFinished(async () => {
      await second.stop();
    });
    await second.call('POST', '/api/v1/ops', { op_id: 'after:s', agent: owner });
    await rowOf(page, 'after:s').waitFor();
    await page.getByText('Live', { exact: true }).waitFor();
    await eventually(async () => expect(await rowOf(page, 'before:s').count()).toBe(0));
  });
});
