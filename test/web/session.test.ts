import { describe, expect, test } from 'vitest';
import { BROWSER_PATH, NO_BROWSER } from '../support/browser.ts';
import { holdBack, rowOf, signIn, useDashboard } from '../support/dashboard.ts';
import { eventually } from '../support/eventually.ts';
import { ADMIN_KEY } from '../support/gateway.ts';

if (BROWSER_PATH === undefined)
  console.warn(`the tests of who is signed in at the dashboard are skipped: ${NO_BROWSER}`);

describe.skipIf(BROWSER_PATH === undefined)('sign-in state at the dashboard', () => {
  const { agent, gateway, openPage, signedIn } = useDashboard();

  test('an answer for a revoked key does not sign out the next user', async () => {
    const { body: revoked } = await gateway().call('POST', '/api/v1/iam/api-keys', {
      name: 'revoked',
      scopes: ['read'],
    });
    const page = await signedIn(revoked.key);
    const answer = await holdBack(page, '**/api/v1/policies?*');
    await page.getByRole('link', { name: 'Policies' }).click();
    await answer.asked;
    await gateway().call('POST', `/api/v1/iam/api-keys/${revoked.id}/revoke`);
    await page.getByText('Your session has ended').waitFor();
    await signIn(page, ADMIN_KEY);
    await answer.release();
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.getByRole('cell', { name: 'starter', exact: true }).waitFor();
    expect(await page.getByText('Your session has ended').count()).toBe(0);
    expect(await page.locator('.notice').allTextContents()).toEqual([]);
  });

  test('a bulk control does not continue in the name of the next user', async () => {
    const { body: next } = await gateway().call('POST', '/api/v1/iam/api-keys', { name: 'next', scopes: ['write'] });
    const ask = await agent('acme', 'fleet', 'left-behind');
    for (const trace of ['left-1', 'left-2']) await ask(trace);
    const page = await openPage();
    await signIn(page, ADMIN_KEY);
    await page.getByLabel('Search').fill('left-behind');
    const bearers: string[] = [];
    await page.route('**/api/v1/ops/*/pause*', (route) => {
      bearers.push(route.request().headers().authorization ?? '');
      return route.fulfill({
        status: 429,
        contentType: 'application/problem+json',
        body: '{"detail":"too many requests","retry_after_secs":4}',
      });
    });
    await page.getByRole('button', { name: 'Pause all' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Pause' }).click();
    await eventually(() => expect(bearers.length).toBe(2));
    await page.getByRole('button', { name: 'Sign out' }).click();
    await signIn(page, next.key as string);
    await page.getByText('2 of 2 operations could not be paused: The session that started this has ended.').waitFor();
    expect(new Set(bearers).size).toBe(1);
  });

  test('signing out clears the screen, however slow the gateway is', async () => {
    await (await agent('acme', 'search', 'unseen'))('unseen-1');
    const page = await openPage();
    await signIn(page, ADMIN_KEY);
    await rowOf(page, 'unseen-1:s').waitFor();
    const answer = await holdBack(page, '**/api/v1/auth/methods');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await answer.asked;
    expect(await rowOf(page, 'unseen-1:s').count()).toBe(0);
    await answer.release();
    await page.getByLabel('API key').waitFor();
  });

  test('a key signs in while the accounts are unavailable', async () => {
    const page = await openPage();
    await page.evaluate(`localStorage.setItem('svc.account', '1')`);
    await page.route('**/api/v1/auth/methods', (route) =>
      route.fulfill({ json: { methods: ['api_key', 'password'], registration: 'closed' } }),
    );
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
    await signIn(page, ADMIN_KEY);
  });

  test('a browser without storage gets a message, not an empty page', async () => {
    const page = await openPage();
    await page.addInitScript(
      `Object.defineProperty(window, 'sessionStorage', { get() { throw new DOMException('Access is denied for this document.', 'SecurityError'); } })`,
    );
    await page.reload();
    await page.getByText('Allow cookies and site data for this address.').waitFor();
  });

  test('a view that was left reports no failures', async () => {
    const page = await signedIn();
    const answer = await holdBack(page, '**/api/v1/policies?*', (route) =>
      route.fulfill({ status: 500, contentType: 'application/problem+json', body: '{"detail":"out of order"}' }),
    );
    await page.getByRole('link', { name: 'Policies' }).click();
    await answer.asked;
    await page.getByRole('link', { name: 'Keys' }).click();
    await page.getByText('yours', { exact: true }).waitFor();
    await answer.release();
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.getByText('yours', { exact: true }).waitFor();
    expect(await page.locator('.notice').allTextContents()).toEqual([]);
  });

  test('a failed reload is reported also where its view was left', async () => {
    const page = await signedIn();
    const answer = await holdBack(page, '**/api/v1/policies/reload', (route) =>
      route.fulfill({
        status: 422,
        contentType: 'application/problem+json',
        body: '{"detail":"not reloaded","problems":["a.yaml: no rules"]}',
      }),
    );
    await page.getByRole('link', { name: 'Policies' }).click();
    await page.getByRole('button', { name: 'Reload files' }).click();
    await answer.asked;
    await page.getByRole('link', { name: 'Keys' }).click();
    await page.getByText('yours', { exact: true }).waitFor();
    await answer.release();
    await page
      .locator('#notices')
      .getByText('Not reloaded: the previous policies stay in force: a.yaml: no rules')
      .waitFor();
  });

  test('a secret that arrives after its user has signed out is not shown to the next', async () => {
    const { body: next } = await gateway().call('POST', '/api/v1/iam/api-keys', { name: 'reader', scopes: ['read'] });
    const page = await openPage();
    await signIn(page, ADMIN_KEY);
    await page.getByRole('link', { name: 'Keys' }).click();
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByRole('dialog').getByLabel('Name').fill('too late');
    const answer = await holdBack(page, '**/api/v1/iam/api-keys');
    await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();
    await answer.asked;
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await signIn(page, next.key as string);
    await answer.release();
    await page.locator('#notices').getByText('The session that started this has ended.').waitFor();
    expect(await page.getByRole('dialog').count()).toBe(0);
  });

  test('the page of a link stays, whatever was asked for before it was opened', async () => {
    const { body: revoked } = await gateway().call('POST', '/api/v1/iam/api-keys', { name: 'r', scopes: ['read'] });
    const page = await openPage();
    const follow = (link: string) => page.evaluate(`location.hash = '${link}'`);
    // While the dashboard starts.
    const offer = await holdBack(page, '**/api/v1/auth/methods');
    await page.reload();
    await offer.asked;
    await follow('#/reset-password/first');
    const reset = page.getByRole('heading', { name: 'Choose a new password' });
    await reset.waitFor();
    await offer.release();
    expect(await reset.count()).toBe(1);
    // While somebody is signed in there, whose session then ends.
    await page.getByRole('button', { name: 'Back to sign-in' }).click();
    await signIn(page, revoked.key as string);
    const answer = await holdBack(page, '**/api/v1/policies?*');
    await page.getByRole('link', { name: 'Policies' }).click();
    await answer.asked;
    await follow('#/reset-password/second');
    await reset.waitFor();
    await gateway().call('POST', `/api/v1/iam/api-keys/${revoked.id}/revoke`);
    await answer.release();
    expect(await reset.count()).toBe(1);
    // Another link does take its place.
    await follow('#/accept-invite/third');
    await page.getByRole('heading', { name: 'Accept the invite' }).waitFor();
  });
});
