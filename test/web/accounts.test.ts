import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { BROWSER_PATH, NO_BROWSER, openPage, sharedBrowser } from '../support/browser.ts';
import { addressBecomes, goTo } from '../support/dashboard.ts';
import { eventually } from '../support/eventually.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { withPostgres } from '../support/postgres.ts';

if (BROWSER_PATH === undefined) console.warn(`the tests of accounts at the dashboard are skipped: ${NO_BROWSER}`);

const OWNER = 'the-owner-with-a-long-name@subsidiary.of.the.example.com';
const PASSWORD = 'a horse that nobody corrects';
const newDatabase = withPostgres();

async function signIn(page: Page, email: string): Promise<void> {
  await page.getByLabel('E-mail').fill(email);
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('Live', { exact: true }).waitFor();
}

describe.skipIf(BROWSER_PATH === undefined)('accounts at the dashboard', () => {
  let gateway: TestGateway;
  let browser: Browser;
  beforeAll(async () => {
    browser = await sharedBrowser();
    gateway = await startTestGateway({
      env: { SVC_DATABASE_URL: await newDatabase(), SVC_ARGON2_MEMORY_KIB: '1024' },
    });
  });
  afterAll(async () => {
    await gateway?.stop();
  });
  const open = (url = gateway.url): Promise<Page> => openPage(browser, url);

  async function member(email: string, role = 'viewer'): Promise<string> {
    const { body } = await gateway.call('POST', '/api/v1/auth/invite', { email, role });
    const accepted = { invite_token: body.invite_token, password: PASSWORD };
    return (await gateway.call('POST', '/api/v1/auth/invite/accept', accepted, null)).body.account.id;
  }

  test('the first visitor becomes owner, invites a colleague, and disables them', async () => {
    const owner = await open();
    await owner.getByRole('heading', { name: 'Create the owner account' }).waitFor();
    await owner.getByLabel('E-mail').fill(OWNER);
    await owner.getByLabel('Password').fill('too short');
    await owner.getByRole('button', { name: 'Create account' }).click();
    await owner.getByRole('alert').getByText('12 characters').waitFor();
    await owner.getByLabel('Password').fill(PASSWORD);
    await owner.getByRole('button', { name: 'Create account' }).click();
    await owner.getByText('Live', { exact: true }).waitFor();
    await owner.reload();
    await owner.getByText('Live', { exact: true }).waitFor();
    await owner.getByRole('link', { name: 'People' }).click();
    await owner.getByRole('button', { name: 'Invite' }).click();
    await owner.getByLabel('E-mail').fill('viewer@example.com');
    await owner.getByRole('dialog').getByLabel('Role').selectOption('viewer');
    await owner.getByRole('button', { name: 'Create invite' }).click();
    const secret = owner.getByRole('dialog', { name: 'Invite link' });
    const link = (await secret.getByRole('status').textContent()) ?? '';
    await owner.getByRole('button', { name: 'Done' }).click();

    const colleague = await open(link);
    await addressBecomes(colleague, '/');
    await colleague.getByLabel('New password').fill(PASSWORD);
    await colleague.getByLabel('Confirm password').fill(`${PASSWORD}!`);
    await colleague.getByRole('button', { name: 'Create account' }).click();
    await colleague.getByRole('alert').getByText('do not match').waitFor();
    await colleague.getByLabel('Confirm password').fill(PASSWORD);
    await colleague.getByRole('button', { name: 'Create account' }).click();
    await colleague.getByText('Your account is ready').waitFor();
    await signIn(colleague, 'viewer@example.com');

    await goTo(owner, '/people');
    await owner.getByRole('button', { name: 'Disable viewer@example.com' }).click();
    await owner.getByRole('dialog').getByRole('button', { name: 'Disable' }).click();
    await colleague.getByText('Your session has ended').waitFor();
  });

  test('a role changes on confirmation, during work, in rights and in what is offered', async () => {
    await member('rises@example.com');
    const page = await open();
    await signIn(page, 'rises@example.com');
    await goTo(page, '/keys');
    await page.getByText('Only administrators see API keys.').waitFor();
    const admin = await open();
    await signIn(admin, OWNER);
    await goTo(admin, '/people');
    const role = admin.getByLabel('Role of rises@example.com');
    await role.selectOption('admin');
    await admin.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    await eventually(async () => expect(await role.inputValue()).toBe('viewer'));
    await role.selectOption('admin');
    await admin.getByRole('dialog').getByRole('button', { name: 'Change to admin' }).click();
    // Its sessions end with the old role, or go on with the new one.
    await page
      .getByText(/Your role is now admin|Your session has ended/)
      .first()
      .waitFor({ timeout: 90_000 });
  });

  test('tabs of one browser sign out together, and never mix accounts', async () => {
    for (const email of ['first@example.com', 'other@example.com']) await member(email);
    const first = await open();
    await signIn(first, 'first@example.com');
    const second = await first.context().newPage();
    await second.goto(gateway.url);
    await second.getByRole('button', { name: 'Sign out' }).click();
    await first.getByText('You signed out in another tab.').waitFor();
    await signIn(first, 'first@example.com');
    await signIn(second, 'other@example.com');
    await first.getByText('Someone else signed in').waitFor();
  });

  test('two tabs of one account renew their tokens without signing each other out', async () => {
    await member('tabs@example.com');
    const first = await open();
    await first.context().clock.install();
    await first.reload();
    await signIn(first, 'tabs@example.com');
    const second = await first.context().newPage();
    await second.goto(gateway.url);
    await second.getByText('Live', { exact: true }).waitFor();
    const renewed: number[] = [];
    first.context().on('response', (response) => {
      if (response.url().endsWith('/auth/refresh')) renewed.push(response.status());
    });
    await first.context().clock.fastForward('14:30');
    for (const page of [first, second]) await goTo(page, '/budgets');
    await eventually(() => expect(renewed.length).toBeGreaterThanOrEqual(2));
    expect(new Set(renewed)).toEqual(new Set([200]));
    for (const page of [first, second]) expect(await page.getByText('Your session has ended').count()).toBe(0);
  });

  test('a link for a new password works once, and ends the sessions of its account', async () => {
    const id = await member('forgets@example.com');
    const elsewhere = await open();
    await signIn(elsewhere, 'forgets@example.com');
    const { body } = await gateway.call('POST', `/api/v1/accounts/${id}/reset`);
    const page = await open(`${gateway.url}/${new URL(body.link).hash}`);
    await page.getByLabel('New password').fill(`${PASSWORD} now`);
    await page.getByLabel('Confirm password').fill(`${PASSWORD} now`);
    await page.getByRole('button', { name: 'Set password' }).click();
    await page.getByText('Your password has been changed.').waitFor();
    await elsewhere.getByText('Your session has ended').waitFor();
  });

  test('a key signs in beside accounts, also while these are unavailable', async () => {
    const page = await open();
    await page.evaluate(`localStorage.setItem('svc.account', '1')`);
    await page.route('**/api/v1/auth/refresh', (route) =>
      route.fulfill({
        status: 503,
        contentType: 'application/problem+json',
        body: '{"detail":"the account store cannot be reached","retry_after_secs":5}',
      }),
    );
    await page.reload();
    await page.getByText('The account store cannot be reached').waitFor();
    await page.getByRole('button', { name: 'Use an API key' }).click();
    await page.getByRole('textbox', { name: 'API key' }).waitFor();
  });
});
