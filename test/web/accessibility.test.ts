import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { describe, expect, onTestFinished, test } from 'vitest';
import { BROWSER_PATH, NO_BROWSER, sharedBrowser } from '../support/browser.ts';
import { goTo, signIn, useDashboard } from '../support/dashboard.ts';
import { ADMIN_KEY } from '../support/gateway.ts';

if (BROWSER_PATH === undefined) console.warn(`the tests of accessibility are skipped: ${NO_BROWSER}`);

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const PATHS = [
  ...['/', '/operations', '/operations/axe-1%3As', '/approvals', '/alerts', '/agents', '/agents/acme/search/axe'],
  ...['/policies', '/audit', '/budgets', '/keys', '/people', '/webhooks', '/cluster', '/changes', '/nowhere'],
];

describe.skipIf(BROWSER_PATH === undefined)('accessibility of the dashboard', () => {
  const { agent, gateway } = useDashboard();

  test.each(['light', 'dark'] as const)(
    'axe finds nothing on any page in the %s theme, nothing is cut off',
    async (theme) => {
      const ask = await agent('acme', 'search', 'axe');
      await ask('axe-1');
      await ask('axe-2', 'launch_rocket');
      await gateway().call('POST', '/api/v1/halts', { scope: 'org:axed', reason: 'so that it is shown' });
      const context = await (await sharedBrowser()).newContext({ colorScheme: theme, bypassCSP: true });
      onTestFinished(() => context.close());
      const page = await context.newPage();
      await page.goto(`${gateway().url}/operations`);
      await page.evaluate(AXE);
      const violations = async (what: string): Promise<readonly string[]> => {
        // Parts that fade in are pale until then.
        await page.evaluate(
          'Promise.all(document.getAnimations().map(({ finished }) => finished)).then(() => undefined)',
        );
        const found = (await page.evaluate('axe.run()')) as {
          violations: { id: string; nodes: { target: string[] }[] }[];
        };
        return found.violations.map(({ id, nodes }) => `${what}: ${id} at ${nodes[0]?.target.join(' ')}`);
      };
      const all = [...(await violations('sign-in'))];
      await signIn(page, ADMIN_KEY);
      for (const width of [1280, 390]) {
        await page.setViewportSize({ width, height: 900 });
        for (const path of PATHS) {
          await page.evaluate(`history.pushState(null, '', '${path}'); dispatchEvent(new PopStateEvent('popstate'))`);
          await page.locator('main h1').first().waitFor();
          await page.waitForLoadState('networkidle');
          // Lists that are read are drawn a moment later.
          await page.evaluate('new Promise((done) => setTimeout(done, 150))');
          all.push(...(await violations(`${path} at ${width}`)));
          if (await page.evaluate('document.documentElement.scrollWidth > innerWidth'))
            all.push(`${path} at ${width} is too wide`);
        }
      }
      await page.setViewportSize({ width: 1280, height: 900 });
      await goTo(page, '/operations');
      await page.getByRole('button', { name: 'Halt…' }).click();
      await page.getByRole('dialog').getByLabel('Org', { exact: true }).fill('acme');
      all.push(...(await violations('the dialog of a halt')));
      await page.keyboard.press('Escape');
      await page.locator('dialog').waitFor({ state: 'detached' });
      await page.keyboard.press('Control+k');
      await page.getByRole('combobox', { name: 'Jump to' }).fill('a');
      all.push(...(await violations('the palette')));
      expect(all).toEqual([]);
    },
  );
});
