import { describe, expect, test } from 'vitest';
import { BROWSER_PATH, NO_BROWSER } from '../support/browser.ts';
import { useDashboard } from '../support/dashboard.ts';

if (BROWSER_PATH === undefined) console.warn(`the tests of what other browsers and screens need of the dashboard are skipped: ${NO_BROWSER}`);

describe.skipIf(BROWSER_PATH === undefined)('what other browsers and screens need of the dashboard', () => {
  const { signedIn } = useDashboard();

  test('a secret that is shown once stays until it is dismissed, however often Escape is pressed', async () => {
    const page = await signedIn();
    await page.getByRole('link', { name: 'Keys' }).click();
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByRole('dialog').getByLabel('Name').fill('kept');
    await page.getByRole('dialog').getByRole('button', { name: 'Create' }).click();
    const secret = page.getByRole('dialog', { name: 'The new API key' });
    await secret.getByText(/^svc_/).waitFor();
    for (let times = 0; times < 4; times += 1) await page.keyboard.press('Escape');
    expect(await secret.getByText(/^svc_/).isVisible()).toBe(true);
    await secret.getByRole('button', { name: 'Done' }).click();
    await secret.waitFor({ state: 'detached' });
  });
});
