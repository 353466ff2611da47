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

  test('the filters of the audit log are within reach on a screen that was turned to be wide', async () => {
    const page = await signedIn();
    await page.setViewportSize({ width: 600, height: 900 });
    await page.getByRole('link', { name: 'Audit', exact: true }).click();
    await page.getByRole('main').getByText('Filters').waitFor();
    expect(await page.getByLabel('Event').isVisible()).toBe(false);
    await page.setViewportSize({ width: 900, height: 600 });
    await page.getByRole('main').getByText('Filters').click();
    await page.getByLabel('Event').waitFor();
    expect(await page.getByRole('main').getByText('Filters').isVisible()).toBe(false);
  });
});
