import { describe, expect, onTestFinished, test } from 'vitest';
import { BROWSER_PATH, NO_BROWSER } from '../support/browser.ts';
import { signIn, useDashboard } from '../support/dashboard.ts';
import { eventually } from '../support/eventually.ts';
import { ADMIN_KEY } from '../support/gateway.ts';

if (BROWSER_PATH === undefined)
  console.warn(`the tests of what other browsers and screens need of the dashboard are skipped: ${NO_BROWSER}`);

describe.skipIf(BROWSER_PATH === undefined)('what other browsers and screens need of the dashboard', () => {
  const { gateway, openPage, signedIn } = useDashboard();

  test('a one-time secret stays until it is dismissed, whatever Escape does', async () => {
    const page = await signedIn();
    await page.getByRole('link', { name: 'Keys' }).click();
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByRole('dialog').getByLabel('Name').fill('kept');
    await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();
    const secret = page.getByRole('dialog', { name: 'New API key' });
    await secret.getByText(/^svc_/).waitFor();
    for (let times = 0; times < 4; times += 1) await page.keyboard.press('Escape');
    expect(await secret.getByText(/^svc_/).isVisible()).toBe(true);
    await secret.getByRole('button', { name: 'Done' }).click();
    await secret.waitFor({ state: 'detached' });
  });

  test('the audit filters are reachable on a landscape phone', async () => {
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

  test("times use the browser's language, except right-to-left ones", async () => {
    const browser = (await openPage()).context().browser()!;
    const timesIn = async (locale: string): Promise<unknown> => {
      const context = await browser.newContext({ locale, timezoneId: 'Asia/Jerusalem' });
      onTestFinished(() => context.close());
      const page = await context.newPage();
      await page.goto(gateway().url);
      return page.evaluate(
        `import('/format.js').then(({ dateTime, shortTime }) => [dateTime('2025-11-23T12:00:00Z'), shortTime(new Date().getFullYear() + '-11-23T12:00:00Z')].map((said) => said.replace('\u202f', ' ')))`,
      );
    };
    expect(await timesIn('de')).toEqual(['23.11.2025, 14:00:00 GMT+2', '23. Nov., 14:00:00 GMT+2']);
    for (const locale of ['he', 'ar-EG', 'fa'])
      expect(await timesIn(locale)).toEqual(['Nov 23, 2025, 14:00:00 GMT+2', 'Nov 23, 14:00:00 GMT+2']);
  });

  test('a time that has only just passed is not counted in seconds', async () => {
    const page = await signedIn();
    expect(
      await page.evaluate(
        `import('/format.js').then(({ ago }) => [0, 1_500, 90_000].map((ms) => ago(new Date(Date.now() - ms).toISOString())))`,
      ),
    ).toEqual(['just now', '1 s ago', '1 min ago']);
  });

  test('a phone does not zoom in on a field: its text is at least 16 pixels', async () => {
    const page = await openPage();
    await page.setViewportSize({ width: 390, height: 844 });
    const sizes = () =>
      page
        .locator('input:not([type=checkbox]), select')
        .evaluateAll((controls: object[]) =>
          controls.map((control) => (globalThis as any).getComputedStyle(control).fontSize),
        );
    await eventually(async () => expect(await sizes()).toEqual(['16px']));
    await signIn(page, ADMIN_KEY);
    await eventually(async () => expect(await sizes()).toEqual(['16px', '16px', '16px']));
    // Day, hour and second of such a size are not cut off.
    await page.getByRole('link', { name: 'Audit', exact: true }).click();
    await page.getByRole('main').getByText('Filters').click();
    expect((await page.getByLabel(/^From/).boundingBox())!.width).toBeGreaterThan(300);
  });

  test('the address ends at the last search, and ignores a view that was left', async () => {
    const page = await openPage();
    await page.clock.install();
    // As Safari has it, but for how long: a hundred times in ten seconds, of which a key that is held makes thirty a
    // second.
    await page.evaluate(`{
      const { replaceState } = history;
      let left = 10;
      history.replaceState = function (...said) {
        if (left === 0) throw new DOMException('Attempt to use history.replaceState() more than 100 times per 10 seconds', 'SecurityError');
        left -= 1;
        replaceState.apply(this, said);
      };
      globalThis.allowMore = (times) => { left = times; };
    }`);
    await signIn(page, ADMIN_KEY);
    const search = page.getByLabel('Search');
    for (let letters = 0; letters < 15; letters += 1) await search.press('x');
    expect(await page.evaluate('location.hash')).toBe('#/operations?q=xxxxxxxxxx');
    await page.evaluate('allowMore(1)');
    await eventually(async () => expect(await page.evaluate('location.hash')).toBe('#/operations?q=xxxxxxxxxxxxxxx'));
    await search.press('y');
    await page.getByRole('link', { name: 'Policies' }).click();
    await page.getByRole('button', { name: 'Reload files' }).waitFor();
    await page.evaluate('allowMore(10)');
    await page.clock.fastForward(10_000);
    expect(await page.evaluate('location.hash')).toBe('#/policies');

    // Nor of one that was opened anew, without what was looked for.
    await page.getByRole('link', { name: 'Agents' }).click();
    await page.getByRole('searchbox', { name: 'Team' }).waitFor();
    await page.evaluate('allowMore(0)');
    await page.getByRole('searchbox', { name: 'Team' }).press('z');
    await page.evaluate(`location.hash = '#/agents?agent_id=a'`);
    await page.locator('input:focus').waitFor({ state: 'detached' });
    expect(await page.getByRole('searchbox', { name: 'Agent' }).inputValue()).toBe('a');
    await page.evaluate('allowMore(10)');
    await page.clock.fastForward(10_000);
    expect(await page.evaluate('location.hash')).toBe('#/agents?agent_id=a');
  });
});
