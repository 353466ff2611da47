import { describe, test } from 'vitest';
import { BROWSER_PATH, NO_BROWSER } from '../support/browser.ts';
import { focusOn, rowOf, signIn, stateOf, useDashboard } from '../support/dashboard.ts';
import { ADMIN_KEY } from '../support/gateway.ts';

if (BROWSER_PATH === undefined) console.warn(`the tests of the keyboard at the dashboard are skipped: ${NO_BROWSER}`);

describe.skipIf(BROWSER_PATH === undefined)('the keyboard at the dashboard', () => {
  const { agent, openPage, signedIn } = useDashboard();

  test('controls have names, and the keyboard alone controls an operation', async () => {
    const page = await signedIn();
    await (await agent('acme', 'search', 'typed'))('typed-1');
    await stateOf(rowOf(page, 'typed-1:s'), 'running');
    await page.getByLabel('Search').focus();
    await page.keyboard.type('typed-1');
    for (const [role, name] of [
      ['combobox', 'Org'],
      ['combobox', 'State'],
      ['button', 'acme / search / typed 1'],
      ['region', 'Operations'],
      ['link', 'typed-1:s'],
      ['link', 'acme / search / typed'],
      ['button', 'Pause typed-1:s'],
    ] as const) {
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

  test('the focus stays behind a dialog, in a reloaded list and after a link', async () => {
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
    await page.getByRole('dialog').getByRole('button', { name: 'Create new token' }).press('Enter');
    await page.getByRole('button', { name: 'Done' }).press('Enter');
    await focusOn(page.getByRole('button', { name: 'New token for acme / focus / stays' }));
    const remove = page.getByRole('button', { name: 'Remove acme / focus / goes' });
    await remove.press('Enter');
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).press('Enter');
    await remove.waitFor({ state: 'detached' });
    await focusOn(page.locator('tbody button:focus'));
    await (await agent('acme', 'focus', 'asks'))('focus-1');
    await page.getByRole('link', { name: 'Operations' }).click();
    await rowOf(page, 'focus-1:s').getByRole('link', { name: 'focus-1:s' }).press('Enter');
    await focusOn(page.getByRole('main'));
  });

  test('a refused form keeps the focus', async () => {
    const page = await openPage();
    await page.getByLabel('API key').fill('svc_wrong_key');
    await page.getByLabel('API key').press('Enter');
    await page.getByRole('alert').getByText('unknown, expired or revoked').waitFor();
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
    // Closed while it is on its way, it is told all the same.
    let answer = (): void => {};
    const asked = new Promise<void>((resolve) => {
      void page.route('**/api/v1/agents', async (route) => {
        resolve();
        await new Promise<void>((go) => {
          answer = go;
        });
        await route.continue();
      });
    });
    await register.press('Enter');
    await asked;
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    answer();
    await page.locator('#notices').getByText('team').waitFor();
  });
});
