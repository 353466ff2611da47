import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { BROWSER_PATH, NO_BROWSER, openPage, sharedBrowser } from '../support/browser.ts';
import { linesOf } from '../support/dashboard.ts';
import { ADMIN_KEY, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { withPostgres } from '../support/postgres.ts';

if (BROWSER_PATH === undefined)
  console.warn(`the tests of accounts and invites at the dashboard are skipped: ${NO_BROWSER}`);

const PASSWORD = 'a horse that nobody corrects';
const newDatabase = withPostgres();

describe.skipIf(BROWSER_PATH === undefined)('accounts and invites as seen by an admin', () => {
  let gateway: TestGateway;
  let browser: Browser;
  beforeAll(async () => {
    browser = await sharedBrowser();
    gateway = await startTestGateway({
      env: { SVC_DATABASE_URL: await newDatabase(), SVC_ARGON2_MEMORY_KIB: '1024' },
    });
    await gateway.call('POST', '/api/v1/auth/register', { email: 'owner@example.com', password: PASSWORD }, null);
  });
  afterAll(async () => {
    await gateway?.stop();
  });

  test('a locked account is marked, and an admin unlocks it', async () => {
    const { invite_token } = (
      await gateway.call('POST', '/api/v1/auth/invite', { email: 'locked-out@example.com', role: 'viewer' })
    ).body;
    await gateway.call('POST', '/api/v1/auth/invite/accept', { invite_token, password: PASSWORD }, null);
    for (let attempt = 0; attempt < 5; attempt++)
      await gateway.call(
        'POST',
        '/api/v1/auth/login',
        { email: 'locked-out@example.com', password: 'not this one' },
        null,
      );
    const page = await openAccounts();
    const row = page.getByRole('row').filter({ hasText: 'locked-out@example.com' });
    await row.getByText('locked until').waitFor();
    await row.getByRole('button', { name: 'Unlock locked-out@example.com' }).click();
    await row.getByText('active').waitFor();
    expect(await row.getByRole('button', { name: 'Unlock locked-out@example.com' }).count()).toBe(0);
    expect(
      (await gateway.call('POST', '/api/v1/auth/login', { email: 'locked-out@example.com', password: PASSWORD }, null))
        .status,
    ).toBe(200);
  });

  test('an invite is shown until it is revoked, and then its link is useless', async () => {
    const { body } = await gateway.call('POST', '/api/v1/auth/invite', {
      email: 'mistaken@example.com',
      role: 'admin',
    });
    const page = await openAccounts();
    await page
      .getByRole('table', { name: 'Open invites' })
      .getByRole('cell', { name: 'mistaken@example.com', exact: true })
      .waitFor();
    await page.getByRole('button', { name: 'Revoke the invite for mistaken@example.com' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await page.getByRole('cell', { name: 'mistaken@example.com', exact: true }).waitFor({ state: 'detached' });
    expect(
      (
        await gateway.call(
          'POST',
          '/api/v1/auth/invite/accept',
          { invite_token: body.invite_token, password: PASSWORD },
          null,
        )
      ).status,
    ).toBe(422);
  });

  test('at 1024 pixels an open invite is on unbroken lines and can be revoked', async () => {
    await gateway.call('POST', '/api/v1/auth/invite', {
      email: 'narrow@northwind.example',
      role: 'developer',
      org_id: 'northwind',
    });
    const page = await openAccounts();
    await page.setViewportSize({ width: 1024, height: 800 });
    const row = page
      .getByRole('table', { name: 'Open invites' })
      .getByRole('row', { name: 'narrow@northwind.example' });
    for (const name of [/^northwind$/, /ago$|^just now$/, /UTC|GMT/])
      expect(await linesOf(row.getByRole('cell', { name }))).toBe(1);
    await row.getByRole('cell', { name: 'you', exact: true }).waitFor();
    const place = await row.getByRole('button', { name: 'Revoke' }).boundingBox();
    expect(place!.x + place!.width).toBeLessThanOrEqual(1024);
    await row.getByRole('button', { name: 'Revoke' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await row.waitFor({ state: 'detached' });
  });

  /** The view of the accounts, by an API key. */
  async function openAccounts(): Promise<Page> {
    const page = await openPage(browser, gateway.url);
    await page.getByRole('button', { name: 'Use an API key' }).click();
    await page.getByLabel('API key').fill(ADMIN_KEY);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('link', { name: 'Accounts' }).click();
    return page;
  }
});
