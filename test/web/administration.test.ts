import { describe, expect, test } from 'vitest';
import { BROWSER_PATH, NO_BROWSER } from '../support/browser.ts';
import { goTo, useDashboard } from '../support/dashboard.ts';
import { eventually } from '../support/eventually.ts';

if (BROWSER_PATH === undefined) console.warn(`the tests of administration are skipped: ${NO_BROWSER}`);

describe.skipIf(BROWSER_PATH === undefined)('administration at the dashboard', () => {
  const { agent, gateway, openPage, signedIn } = useDashboard();

  test('a new key is shown once, stays whatever Escape does, works, and is revoked', async () => {
    const page = await signedIn();
    await goTo(page, '/keys');
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByRole('dialog').getByLabel('Name').fill('ci');
    await page.getByRole('dialog').getByLabel('write').check();
    await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();
    const secret = page.getByRole('dialog', { name: 'New API key' });
    const key = (await secret.getByRole('status').textContent()) ?? '';
    for (let times = 0; times < 3; times += 1) await page.keyboard.press('Escape');
    await secret.getByRole('button', { name: 'Done' }).click();
    const { status, body } = await gateway().call('GET', '/api/v1/iam/api-keys/self', undefined, key);
    expect([status, body.scopes]).toEqual([200, ['read', 'write']]);
    await page.getByRole('button', { name: 'Revoke ci' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await page.getByText('“ci” was revoked.').waitFor();
    expect((await gateway().call('GET', '/api/v1/iam/api-keys/self', undefined, key)).status).toBe(401);
  });

  test('an agent is registered once, and removed with a word on what stays open', async () => {
    const page = await signedIn();
    await goTo(page, '/agents');
    const register = async () => {
      await page.getByRole('button', { name: 'Register agent' }).click();
      const dialog = page.getByRole('dialog', { name: 'Register an agent' });
      await dialog.getByLabel('Org').fill('acme');
      await dialog.getByLabel('Team').fill('search');
      await dialog.getByLabel('Agent').fill('enrolled');
      await dialog.getByRole('button', { name: 'Register' }).click();
    };
    await register();
    await page.getByRole('dialog', { name: 'Agent token' }).getByRole('button', { name: 'Done' }).click();
    await register();
    await page.getByRole('alert').getByText('This agent is already registered.').waitFor();
    await page.keyboard.press('Escape');
    await gateway().call('POST', '/api/v1/ops', {
      op_id: 'stays:s',
      agent: { org_id: 'acme', team_id: 'search', agent_id: 'enrolled' },
    });
    await page.getByRole('link', { name: 'enrolled' }).click();
    await eventually(async () => {
      await page.getByRole('button', { name: 'Remove' }).click();
      const said = await page.getByRole('dialog').textContent();
      if (!said?.includes('1 operation in flight stays open')) await page.keyboard.press('Escape');
      expect(said).toContain('1 operation in flight stays open');
    });
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await page.getByText('acme / search / enrolled was removed.').waitFor();
  });

  test('a webhook is created with its secret, tested and deleted', async () => {
    const page = await signedIn();
    await goTo(page, '/webhooks');
    await page.getByRole('button', { name: 'Create webhook' }).click();
    const dialog = page.getByRole('dialog', { name: 'Create a webhook' });
    await dialog.getByLabel('URL').fill('https://127.0.0.1/hook');
    await dialog.getByRole('button', { name: 'Create webhook' }).click();
    await dialog
      .getByRole('alert')
      .getByText(/127\.0\.0\.1|private|loopback/)
      .waitFor();
    await dialog.getByLabel('URL').fill('https://hooks.example.com/svc');
    await dialog.getByRole('button', { name: 'Create webhook' }).click();
    await page
      .getByRole('dialog', { name: 'Signing secret' })
      .getByText(/^whsec_/)
      .waitFor();
    await page.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('button', { name: 'Test https://hooks.example.com/svc' }).click();
    await page.getByText('A test message is on its way.').waitFor();
    expect(await page.getByRole('button', { name: /^Take over/ }).count()).toBe(0);
    await page.getByRole('button', { name: 'Delete https://hooks.example.com/svc' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByText('No webhooks yet.').waitFor();
  });

  test('a webhook is taken over from the key that made it, which is then revoked', async () => {
    const maker = (await gateway().call('POST', '/api/v1/iam/api-keys', { name: 'leaving', scopes: ['admin'] })).body;
    const create = (path: string) =>
      gateway().call(
        'POST',
        '/api/v1/webhooks',
        { url: `https://example.com/${path}`, events: ['violation'] },
        maker.key,
      );
    await create('stays');
    await create('goes');
    const page = await signedIn();
    await goTo(page, '/webhooks');
    await page.getByRole('button', { name: 'Take over https://example.com/stays' }).click();
    await page.getByRole('dialog').getByText(`It was made by key:${maker.id}`).waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Take over' }).click();
    await page.getByRole('button', { name: 'Take over https://example.com/stays' }).waitFor({ state: 'detached' });
    await goTo(page, '/keys');
    await page.getByRole('button', { name: 'Revoke leaving' }).click();
    await page.getByText('The webhooks that it made end with it: https://example.com/goes.').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await page.getByText('“leaving” was revoked.').waitFor();
    await goTo(page, '/webhooks');
    await page.getByRole('button', { name: 'Delete https://example.com/stays' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByText('No webhooks yet.').waitFor();
  });

  test('the audit log follows, opens an entry with its links, and is saved as a file', async () => {
    const page = await signedIn();
    await goTo(page, '/audit?agent_id=followed');
    await page.getByText('No entries match the filters.').waitFor();
    await (await agent('acme', 'search', 'followed'))('follow-1');
    const entry = page.locator('details.entry').filter({ hasText: 'tool.call web_search' });
    await entry.locator('summary').click();
    await entry.getByRole('link', { name: 'timeline' }).waitFor();
    await entry.getByRole('link', { name: 'acme / search / followed' }).first().waitFor();
    await entry.getByRole('button', { name: 'Copy entry as JSON' }).waitFor();
    const saved = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Export CSV' }).click();
    expect((await saved).suggestedFilename()).toBe('audit.csv');
    await goTo(page, '/audit');
    await page.getByText(/links of the chain hold/).waitFor();
  });

  test('budgets stand with the nearest to its end first, also when they are many', async () => {
    for (let at = 0; at < 30; at += 1)
      await gateway().call('POST', '/api/v1/usage', {
        agent: { org_id: 'spends', team_id: 'a', agent_id: `spender-${at}` },
        cost_usd: at === 17 ? 50 : 1,
      });
    const page = await signedIn();
    await goTo(page, '/budgets?org_id=spends&tier=agent');
    const rows = page.getByRole('table', { name: 'Budgets' }).getByRole('rowheader');
    await eventually(async () => expect(await rows.count()).toBe(30));
    expect(await rows.first().textContent()).toBe('spends / a / spender-17');
  });

  test('a failed list says so, is read again by itself, and a refused one is not', async () => {
    const page = await openPage();
    let asked = 0;
    await page.route('**/api/v1/budgets?*', (route) => {
      asked += 1;
      return asked < 4
        ? route.fulfill({ status: 503, contentType: 'application/problem+json', body: '{"detail":"out of order"}' })
        : route.continue();
    });
    await page.getByRole('textbox', { name: 'API key' }).fill('test-admin-key-0123456789-0123456789-0123456789');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('Live', { exact: true }).waitFor();
    asked = 0;
    await goTo(page, '/budgets');
    await page.getByText('Out of order').waitFor();
    await page.getByRole('table', { name: 'Budgets' }).waitFor();
    expect(asked).toBeGreaterThan(3);
  });

  test('gateways that have not confirmed an order are named in a notice', async () => {
    const page = await signedIn();
    await agent('acme', 'search', 'unconfirmed');
    await goTo(page, '/agents/acme/search/unconfirmed');
    await page.route('**/api/v1/agents/acme/search/unconfirmed', (route) =>
      route.fulfill({ status: 204, headers: { 'svc-unconfirmed': 'two, database' } }),
    );
    await page.getByRole('button', { name: 'Remove' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await page.getByText('two did not confirm this in time, and will follow on reaching the database again.').waitFor();
  });

  test('a gateway that is alone says so where a cluster would be, without a link there', async () => {
    const page = await signedIn();
    await goTo(page, '/cluster');
    await page.getByText('This gateway runs alone.').waitFor();
    const links = page.getByRole('navigation').getByRole('link');
    expect(await links.allTextContents()).toEqual([
      ...['Overview', 'Operations', 'Approvals', 'Alerts', 'Agents', 'Policies', 'Audit', 'Budgets'],
      ...['Keys', 'People', 'Webhooks'],
    ]);
  });
});
