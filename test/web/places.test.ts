/** Where things stand: a hand that acts in a hurry must not hit what it did not mean. */
import { describe, expect, test } from 'vitest';
import { BROWSER_PATH, NO_BROWSER } from '../support/browser.ts';
import { rowOf, signIn, useDashboard } from '../support/dashboard.ts';
import { ADMIN_KEY } from '../support/gateway.ts';

if (BROWSER_PATH === undefined) console.warn(`the tests of places on the dashboard are skipped: ${NO_BROWSER}`);

describe.skipIf(BROWSER_PATH === undefined)('positions on the dashboard', () => {
  const { agent, gateway, openPage, signedIn } = useDashboard();

  test('the terminate button touches no other, on any screen', async () => {
    const page = await signedIn();
    await (await agent('acme', 'places', 'apart'))('apart-1');
    const row = rowOf(page, 'apart-1:s');
    for (const width of [1440, 1024, 768, 390]) {
      await page.setViewportSize({ width, height: 800 });
      const [pause, terminate] = await Promise.all(
        ['Pause', 'Terminate'].map((name) => row.getByRole('button', { name }).boundingBox()),
      );
      expect(terminate!.x - (pause!.x + pause!.width)).toBeGreaterThanOrEqual(5);
    }
  });

  test('growing counts above the operations move no row under a pressing hand', async () => {
    const page = await openPage();
    await signIn(page, ADMIN_KEY);
    const check = await agent('acme', 'places', 'counted');
    for (const name of ['d', 'c', 'b', 'a']) await check(`counted-above-${name}`);
    for (const [name, what] of [
      ['b', 'terminate'],
      ['c', 'complete'],
      ['d', 'pause'],
    ])
      await gateway().call('POST', `/api/v1/ops/counted-above-${name}:s/${what}`);
    await page.route('**/api/v1/ops/*/pause*', () => undefined); // is not answered
    await page.getByLabel('Search').fill('counted-above');
    const row = rowOf(page, 'counted-above-a:s');
    for (const width of [1085, 390]) {
      await page.setViewportSize({ width, height: 800 });
      await page.getByText(/^4 of .* 1 running · 1 paused · 1 completed · 1 terminated$/).waitFor();
      const before = await row.boundingBox();
      await row.getByRole('button', { name: 'Pause' }).click();
      await page.getByText('1 not yet confirmed').waitFor();
      expect((await row.boundingBox())!.y).toBe(before!.y);
      await page.reload();
    }
  });
});
