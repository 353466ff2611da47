import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { describe, expect, onTestFinished, test } from 'vitest';
import { BROWSER_PATH, NO_BROWSER, sharedBrowser } from '../support/browser.ts';
import { goTo, signIn, useDashboard } from '../support/dashboard.ts';
import { eventually } from '../support/eventually.ts';
import { ADMIN_KEY } from '../support/gateway.ts';

if (BROWSER_PATH === undefined) console.warn(`the tests of accessibility are skipped: ${NO_BROWSER}`);

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const PATHS = [
  ...['/', '/operations', '/operations/axe-1%3As', '/approvals', '/alerts', '/agents', '/agents/acme/search/axe'],
  ...['/policies', '/audit', '/budgets', '/keys', '/people', '/webhooks', '/cluster', '/changes', '/nowhere'],
];

/** Parts that fade in are pale until then. */
const violationsOf = (runOnly: readonly string[] | undefined): string => `(async () => {
  await Promise.all(document.getAnimations().map(({ finished }) => finished));
  const { violations } = await axe.run(${JSON.stringify({ runOnly, resultTypes: ['violations'] })});
  return violations.map(({ id, nodes }) => id + ' at ' + nodes[0].target.join(' '));
})()`;

describe.skipIf(BROWSER_PATH === undefined)('accessibility of the dashboard', () => {
  const { agent, gateway } = useDashboard();

  // Everything is looked at twice at two widths: a machine that is busy with other things takes its time.
  test('axe finds nothing on any page in either theme, nothing is cut off', { timeout: 600_000 }, async () => {
    const ask = await agent('acme', 'search', 'axe');
    await ask('axe-1');
    await ask('axe-2', 'launch_rocket');
    await gateway().call('POST', '/api/v1/halts', { scope: 'org:axed', reason: 'so that it is shown' });
    const context = await (await sharedBrowser()).newContext({ bypassCSP: true });
    onTestFinished(() => context.close());
    const page = await context.newPage();
    await page.goto(`${gateway().url}/operations`);
    await page.evaluate(AXE);
    const found: string[] = [];
    /** The second theme differs from the first in its colours only. */
    const look = async (what: string): Promise<void> => {
      for (const [theme, rules] of [
        ['light', undefined],
        ['dark', ['color-contrast']],
      ] as const) {
        await page.emulateMedia({ colorScheme: theme });
        const violations = (await page.evaluate(violationsOf(rules))) as string[];
        found.push(...violations.map((violation) => `${what} in the ${theme} theme: ${violation}`));
      }
    };
    await look('sign-in');
    await signIn(page, ADMIN_KEY);
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 900 });
      for (const path of PATHS) {
        await goTo(page, path);
        await eventually(async () => expect(await page.getByText('Loading').count()).toBe(0));
        await look(`${path} at ${width}`);
        if (await page.evaluate('document.documentElement.scrollWidth > innerWidth'))
          found.push(`${path} at ${width} is too wide`);
      }
    }
    await page.setViewportSize({ width: 1280, height: 900 });
    await goTo(page, '/operations');
    await page.getByRole('button', { name: 'Halt…' }).click();
    await page.getByRole('dialog').getByLabel('Org', { exact: true }).fill('acme');
    await look('the dialog of a halt');
    await page.keyboard.press('Escape');
    await page.locator('dialog').waitFor({ state: 'detached' });
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Jump to' }).fill('a');
    await look('the palette');
    expect(found).toEqual([]);
  });
});
